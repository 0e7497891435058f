"""Predicts time and memory of training, of an evaluation, and of prediction, before the parts are there.

Memory is counted as it is shared: the ranks of a host are forked from one process, whose imports they have in common.
A process's own is what it holds beside them and its share of them (its PSS).
"""

from dataclasses import replace

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.algorithm import FILL, Aggregate
from llcg_dist.config.cluster import Backend
from llcg_dist.config.schema import Config, Verify
from llcg_dist.config.train import WHEN_FREE, Fanouts
from llcg_dist.doctor.batches import BatchSize, expected_batch
from llcg_dist.doctor.plan import Costs, received_bytes
from llcg_dist.doctor.rates import Rates
from llcg_dist.doctor.sizes import GraphSize
from llcg_dist.doctor.stages import KEPT_EDGES, LIBRARIES_MAPPED, StageCost
from llcg_dist.job.devices import evaluates_beside, threads_per_rank
from llcg_dist.models.registry import structure
from llcg_dist.sampling.minibatch import fanouts_per_layer

TRAIN, SERVER, MACHINE, EVALUATE, PREDICT = "train", "the server", "a machine", "an evaluation", "predict"

_LAUNCHER = 215_000_000
"""Memory of `llcg train` while its ranks run."""
_IMPORTS = 390_000_000
"""What all processes of a job on one host have in common: Python, torch, PyG, numba."""
_OWN = 34_000_000
"""What each of them has besides."""
_SERVER = 60_000_000
"""What the server has besides: records, channels."""
_PREDICTING = 330_000_000
"""Memory of `llcg predict` with what it imports."""
_TABLE_PER_NODE = 60
"""Of a table of predictions: node, class, probability, and what writing it takes."""
_SCORED_PER_NODE = 75
"""Of an evaluation, when it has the logits: numbers of the nodes, their classes, those predicted, and pairs of both."""
_BYTES_PER_NODE = 16
"""Of a machine, for each node of its part: degrees, places in a batch, training nodes."""
_SERVER_PER_NODE = 8
"""Of the server, which takes few steps."""
_COPIES_OF_STEP = 3
"""What the server's allocator keeps of correction steps, in terms of what one needs: batches differ."""
_LARGER = 1.25
"""How much longer an evaluation takes than the drawn graph says, which is smaller: fitted to bench.scale."""
_LOGITS = 16e-9
"""CPU seconds of a logit, until it is a class and a probability in a table, and counted with its class."""
_TIMES_READ = 2.3
"""How often an evaluation reads its files where memory does not hold them: about 42 GB of 18 at ten times
ogbn-products' size on 14 GB, reckoned from 20 seconds of one. A machine reads its part once a round then, by its CPU
time there."""
_START_OF_JOB, _START_OF_RANK, _START_PREDICTING = 4.0, 0.3, 3.2
"""CPU seconds in terms of what `llcg` takes to begin: launcher and imports; each rank; `llcg predict`, with its end."""


def training_stages(algorithm: Algorithm, size: GraphSize, costs: Costs, rates: Rates) -> dict[str, StageCost]:
    """{stage: cost}. The server and a machine take place during the training, and an evaluation at the server."""
    config, one_process = algorithm.config, is_one_process(algorithm)
    evaluation = evaluate(config, size, costs, rates)
    machine = machine_cost(algorithm, size, costs, rates)
    beside = not one_process and _evaluates_beside(algorithm)
    server = server_cost(algorithm, size, costs, rates, 0 if beside else evaluation.anonymous)
    processes = 1 if one_process else algorithm.num_machines + 1 + beside
    machines = algorithm.num_machines
    own = server.anonymous + machines * machine.anonymous + (evaluation.anonymous if beside else 0)
    store = size.whole_bytes + (machines * machine.mapped if algorithm.trains_on_parts else 0)
    anonymous = _LAUNCHER + _IMPORTS + (processes + 1) * _OWN + own
    verified = _hashed(_verified(config, store), rates)
    if anonymous + store + evaluation.disk > rates.free_memory:
        evaluation = _read_again(evaluation, _TIMES_READ, rates)
        machine = _read_again(machine, config.num_rounds, rates)
        verified = _read_again(verified, 1, rates)
    start = (_START_OF_JOB + _START_OF_RANK * processes) * rates.partition.start
    local = machines * machine.cpu
    cpu = local + server.cpu + _num_evaluations(config) * evaluation.cpu + verified.cpu
    cores = max(1, min(rates.cores, processes))
    computing = local / cores + server.cpu
    evaluating = _left_to_evaluate(config, evaluation, cores / processes * computing if beside else 0.0)
    seconds = start + verified.seconds / cores + computing + evaluating  # nothing runs beside the imports
    total = StageCost(
        start + cpu,
        anonymous,
        store + 2 * LIBRARIES_MAPPED,
        waits=max(0.0, seconds - (start + cpu) / cores),
        cores=cores,
    )
    share = _OWN + _IMPORTS // (processes + 2)
    return {
        TRAIN: total,
        SERVER: _with_share(server, share),
        MACHINE: _with_share(machine, share),
        EVALUATE: _with_share(evaluation, share),
        PREDICT: predict(config, size, costs, rates),
    }


def is_one_process(algorithm: Algorithm) -> bool:
    return not algorithm.trains_on_parts or algorithm.config.cluster.backend == Backend.loopback


def machine_cost(algorithm: Algorithm, size: GraphSize, costs: Costs, rates: Rates) -> StageCost:
    """One machine in all rounds."""
    held, mapped = _machine_memory(algorithm, size, costs)
    return StageCost(sum(algorithm.local_steps()) * rates.training.step, held, mapped)


def machine_host_bytes(algorithm: Algorithm, size: GraphSize, costs: Costs) -> int:
    """What a machine needs that is alone on its host, with its launcher and all of its part in memory."""
    return _LAUNCHER + _IMPORTS + 2 * _OWN + LIBRARIES_MAPPED + sum(_machine_memory(algorithm, size, costs))


def _machine_memory(algorithm: Algorithm, size: GraphSize, costs: Costs) -> tuple[int, int]:
    """(bytes of a machine's model and batches, those of its part, which it maps)."""
    machines = algorithm.num_machines
    nodes, edges = size.nodes, float(size.edges)
    if algorithm.trains_on_parts:
        nodes, edges = nodes // machines, KEPT_EDGES * edges / machines
    batch = _batch(algorithm.config, size, nodes, edges, algorithm.local_batch_size, algorithm.config.sampling.fanout)
    held = costs.model_bytes() + costs.step_bytes(batch) + _BYTES_PER_NODE * nodes
    return held, size.part_bytes(machines, KEPT_EDGES) if algorithm.trains_on_parts else 0


def server_cost(algorithm: Algorithm, size: GraphSize, costs: Costs, rates: Rates, evaluation: int = 0) -> StageCost:
    """The server in all rounds: models, correction steps, and the whole graph, which it maps. `evaluation`: bytes of
    one where that is not in a process of its own."""
    config, model = algorithm.config, costs.model_bytes()
    step = 0
    if steps := server_steps(algorithm):
        batch_size, fanout = config.train.server_batch_size, config.sampling.server_fanout
        step = _COPIES_OF_STEP * costs.step_bytes(_batch(config, size, size.nodes, size.edges, batch_size, fanout))
    held = _SERVER + 2 * model + received_bytes(config, model) + _SERVER_PER_NODE * size.nodes
    return StageCost(steps * rates.training.server_step, held + max(step, evaluation), size.whole_bytes)


def server_steps(algorithm: Algorithm) -> int:
    """Gradients that the server takes in all rounds; S=fill takes about as many as a machine, S=auto at least one."""
    settings, local = algorithm.config.algorithm, algorithm.local_steps()
    mixing = settings.mix_steps if settings.aggregate == Aggregate.learned else 0
    of_round = settings.fixed_correction_steps or int(settings.corrects)
    return (sum(local) if settings.S == FILL else of_round * len(local)) + mixing * len(local)


def evaluate(config: Config, size: GraphSize, costs: Costs, rates: Rates) -> StageCost:
    """One pass over the whole graph, by one core; hidden states are in memory, or in files of evaluate.scratch."""
    held, in_memory = (
        costs.evaluation_bytes(size.nodes, size.edges, settings)
        for settings in (config.evaluate, replace(config.evaluate, scratch=None))
    )
    computed = size.nodes * rates.training.evaluate_node + size.entries * rates.training.evaluate_entry
    cpu = _LARGER * computed + in_memory * rates.partition.page_byte
    on_disk = in_memory - held
    scored = _SCORED_PER_NODE * size.nodes + (0 if config.evaluate.scratch else _logits(size))
    return StageCost(cpu, max(held + _BYTES_PER_NODE * size.nodes, scored), size.whole_bytes + on_disk, on_disk)


def _logits(size: GraphSize) -> int:
    return 4 * size.nodes * size.classes


def predict(config: Config, size: GraphSize, costs: Costs, rates: Rates) -> StageCost:
    """`llcg predict`: a pass over the whole graph, and from its logits, which are where its states were, a table of all
    nodes."""
    one, speed = evaluate(config, size, costs, rates), rates.partition
    held = max(one.anonymous, (0 if config.evaluate.scratch else _logits(size)) + _TABLE_PER_NODE * size.nodes)
    table = 20 * size.nodes * speed.write_byte + _LOGITS * size.nodes * size.classes
    verified = _hashed(size.file_bytes + _verified(config, size.whole_bytes), rates)
    if _PREDICTING + held + one.mapped > rates.free_memory:
        one, verified = _read_again(one, _TIMES_READ, rates), _read_again(verified, 1, rates)
    cpu = _START_PREDICTING * speed.start + verified.cpu + one.cpu + table
    waits = verified.waits + one.waits
    return StageCost(cpu, _PREDICTING + held, one.mapped + LIBRARIES_MAPPED, one.disk, waits)


def _read_again(cost: StageCost, times: float, rates: Rates) -> StageCost:
    """The cost of a stage whose files do not fit into memory and are read from disk `times` times while it runs."""
    speed, read = rates.partition, times * cost.mapped
    return replace(cost, cpu=cost.cpu + read * speed.read_byte, waits=cost.waits + read * speed.read_wait)


def _hashed(stored: int, rates: Rates) -> StageCost:
    """The checksum of so many bytes."""
    return StageCost(stored * rates.partition.hash_byte, 0, stored)


def _verified(config: Config, stored: int) -> int:
    """Of these bytes of a store: those whose checksums are made when they are read."""
    return stored if config.verify == Verify.full else 0


def _with_share(cost: StageCost, share: int) -> StageCost:
    return replace(cost, anonymous=share + cost.anonymous)


def _batch(config: Config, size: GraphSize, nodes: int, edges: float, batch_size: int, fanout: Fanouts) -> BatchSize:
    fanouts = fanouts_per_layer(fanout, structure(config.model).depth)
    return expected_batch(max(1, nodes), 2 * edges / max(1, nodes), size.train_share, batch_size, fanouts)


def _evaluates_beside(algorithm: Algorithm) -> bool:
    threads = threads_per_rank(algorithm.config.cluster.threads, algorithm.num_machines + 1)
    return evaluates_beside(algorithm.config.evaluate.process, threads)


def _share_before_scores(config: Config) -> float:
    """Of the rounds: those until the first that is scored."""
    every = config.evaluate.every
    return min(1.0, every / config.num_rounds) if isinstance(every, int) and every else 0.0


def _left_to_evaluate(config: Config, evaluation: StageCost, beside: float) -> float:
    """Seconds of all evaluations, which one process makes one after the other, but for those that it has while the
    machines compute, of `beside` in all: none before the first round that is scored."""
    meanwhile = (1 - _share_before_scores(config)) * beside
    return max(0.0, _num_evaluations(config) * evaluation.seconds - meanwhile)


def _num_evaluations(config: Config) -> int:
    """Of the rounds that are scored, and once more by class."""
    every, rounds = config.evaluate.every, config.num_rounds
    if every == WHEN_FREE or not isinstance(every, int):
        return rounds + 1
    return (-(-rounds // every) if every else 0) + 1

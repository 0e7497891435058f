"""Training, evaluation and prediction, predicted from sizes alone."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.doctor import training_stages as module
from llcg_dist.doctor.batches import expected_batch
from llcg_dist.doctor.memory import LayerCosts
from llcg_dist.doctor.sizes import GraphSize
from llcg_dist.doctor.stages import StageCost
from llcg_dist.doctor.training_stages import (
    EVALUATE,
    MACHINE,
    PREDICT,
    SERVER,
    TRAIN,
    machine_cost,
    server_cost,
    server_steps,
    training_stages,
)
from llcg_dist.models.registry import structure
from tests.helpers.stage_facts import rates, size

SETTINGS = ["cluster.num_machines=4", "num_rounds=6", "algorithm.K=10", "algorithm.rho=1", "evaluate.every=4"]


@cache
def method(*overrides: str) -> Algorithm:
    return build_algorithm(load_config([*SETTINGS, *overrides]))


def costs_of(algorithm: Algorithm, graph: GraphSize) -> LayerCosts:
    model = algorithm.config.model
    return LayerCosts(structure(model).layers(graph.features, model.hidden, graph.classes))


def stages_of(*overrides: str, graph: GraphSize | None = None, cores: int = 2) -> dict[str, StageCost]:
    algorithm, graph = method(*overrides), graph or size(nodes=100_000, edges=1_000_000)
    return training_stages(algorithm, graph, costs_of(algorithm, graph), rates(cores=cores))


def test_a_machine_takes_its_steps_and_holds_a_model_a_batch_and_its_nodes() -> None:
    algorithm, graph = method(), size(nodes=100_000, edges=1_000_000)
    costs = costs_of(algorithm, graph)
    cost = machine_cost(algorithm, graph, costs, rates())
    assert cost.cpu == pytest.approx(60 * 0.01)
    batch = expected_batch(25_000, 16.0, 0.5, algorithm.local_batch_size, [10, 10])
    assert cost.anonymous == costs.model_bytes() + costs.step_bytes(batch) + 16 * 25_000
    assert cost.mapped == graph.part_bytes(4, 0.8)


def test_a_batch_in_a_graph_of_which_only_sizes_are_known() -> None:
    batch = expected_batch(1_000_000_000, 20.0, 0.5, 100, [5, -1])
    assert batch.edges == [10_500, 2_000]
    assert batch.rows == [12_600, 2_100, 100]
    assert expected_batch(50, 20.0, 1.0, 100, [5, -1]).rows == [50, 50, 50]  # no more than there are
    assert expected_batch(1_000_000_000, 20.0, 0.5, 100, [0.25]).edges == [500]


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        (["algorithm=psgd_pa"], 0),
        (["algorithm.S=2"], 12),
        (["algorithm.S=fill", "algorithm.correction=beside"], 60),
        (["algorithm.S=1", "algorithm.aggregate=learned", "algorithm.mix_steps=3"], 6 + 18),
    ],
)
def test_steps_of_the_server(overrides: list[str], steps: int) -> None:
    assert server_steps(method(*overrides)) == steps


def test_learned_mixing_holds_all_models_twice_and_one_to_take_gradients_of() -> None:
    graph = size(nodes=100_000, edges=1_000_000)
    plain, learned = method("algorithm.aggregate=mean"), method("algorithm.aggregate=learned")
    costs = costs_of(plain, graph)
    held = [server_cost(algorithm, graph, costs, rates()).anonymous for algorithm in (plain, learned)]
    assert held[1] - held[0] == 4 * costs.model_bytes() // 8 + costs.model_bytes()


def test_evaluation_is_in_a_process_of_its_own_or_at_the_server() -> None:
    apart, at_server = (
        stages_of(f"evaluate.process={switch}", "evaluate.chunk=1000", graph=size(nodes=10_000_000, edges=1_000_000))
        for switch in ("on", "off")
    )
    assert at_server[SERVER].anonymous > 2 * apart[SERVER].anonymous
    assert apart[TRAIN].anonymous > apart[SERVER].anonymous + apart[EVALUATE].anonymous
    of_drawn = 10_000_000 * 1e-6 + 2_000_000 * 1e-7
    assert apart[EVALUATE].cpu == at_server[EVALUATE].cpu == pytest.approx(1.25 * of_drawn)


def test_states_on_disk_are_not_memory() -> None:
    graph = size(nodes=10_000_000, edges=1_000_000)
    in_memory = stages_of("evaluate.chunk=1000", graph=graph)
    on_disk = stages_of("evaluate.chunk=1000", "evaluate.scratch=here", graph=graph)
    states = 10_000_000 * (64 + 4) * 4  # what enters the second layer, and the logits that leave it
    for name in (TRAIN, EVALUATE):
        saved = in_memory[name].anonymous - on_disk[name].anonymous
        scoring = 10_000_000 * (75 - 16)  # is then what an evaluation holds the most for
        assert saved == pytest.approx(states - scoring, rel=0.01)
    assert in_memory[PREDICT].anonymous > on_disk[PREDICT].anonymous  # the probabilities stay in memory
    assert on_disk[EVALUATE].disk == on_disk[PREDICT].disk == pytest.approx(states, rel=0.01)
    assert on_disk[EVALUATE].mapped - in_memory[EVALUATE].mapped == on_disk[EVALUATE].disk


def test_training_is_all_ranks_together_on_the_cores_that_there_are() -> None:
    few, many = stages_of(cores=1), stages_of(cores=8)
    assert few[TRAIN].seconds == pytest.approx(few[TRAIN].cpu)
    # No start, as the host takes no time for it: 4 machines, 6 correction steps, and rounds 4 and 6 and the classes.
    evaluations = 3 * few[EVALUATE].cpu
    assert few[TRAIN].cpu == pytest.approx(4 * few[MACHINE].cpu + 6 * 0.02 + evaluations)
    assert many[TRAIN].seconds < few[TRAIN].seconds / 2
    own = [few[name].anonymous for name in (SERVER, EVALUATE)] + 4 * [few[MACHINE].anonymous]
    assert few[TRAIN].anonymous == pytest.approx(sum(own) + module._LAUNCHER, rel=0.15)


@pytest.mark.parametrize(("cores", "share"), [(8, 1.0), (2, 2 / 6)])
def test_evaluations_follow_each_other_with_their_share_of_the_cores(cores: int, share: float) -> None:
    """After the first four of six rounds; six processes."""
    large = stages_of(graph=size(nodes=10_000_000, edges=1_000_000), cores=cores)
    rounds = 4 * large[MACHINE].cpu / min(cores, 6) + 6 * 0.02
    beside = 2 / 6 * rounds * share
    assert large[TRAIN].seconds == pytest.approx(rounds + 3 * large[EVALUATE].seconds - beside)


def test_files_that_memory_does_not_hold_are_read_from_disk_by_every_evaluation() -> None:
    algorithm, graph = method(), size(nodes=10_000_000, edges=1_000_000)
    held, read = (
        training_stages(algorithm, graph, costs_of(algorithm, graph), speed)
        for speed in (rates(read_byte=1e-9, read_wait=3e-9, free_memory=free) for free in (1 << 40, 1 << 30))
    )
    for stage, times in ((EVALUATE, 2.3), (PREDICT, 2.3 + 1)):  # and once for its checksum
        bytes_read = times * graph.whole_bytes
        assert read[stage].cpu - held[stage].cpu == pytest.approx(1e-9 * bytes_read)
        assert read[stage].seconds - held[stage].seconds == pytest.approx(4e-9 * bytes_read)
    assert read[TRAIN].seconds > 3 * read[EVALUATE].seconds
    assert read[MACHINE].cpu - held[MACHINE].cpu == pytest.approx(1e-9 * 6 * held[MACHINE].mapped)  # once a round


@pytest.mark.parametrize("overrides", [["algorithm=single"], ["algorithm=server_only"], ["cluster.backend=loopback"]])
def test_jobs_of_one_process(overrides: list[str]) -> None:
    apart, together = stages_of(), stages_of(*overrides)
    assert together[TRAIN].anonymous < apart[TRAIN].anonymous
    assert together[TRAIN].seconds >= 0.8 * together[TRAIN].cpu


@given(
    nodes=st.integers(100, 10**7),
    edges=st.integers(1, 10**8),
    features=st.integers(1, 1_000),
    more=st.tuples(*[st.integers(0, 10**6)] * 3),
)
def test_no_stage_gets_cheaper_with_a_larger_graph(
    nodes: int, edges: int, features: int, more: tuple[int, int, int]
) -> None:
    before = stages_of(graph=size(nodes=nodes, edges=edges, features=features))
    after = stages_of(graph=size(nodes=nodes, edges=edges + more[1], features=features + more[2]))
    for name, less in before.items():
        assert after[name].cpu >= less.cpu * (1 - 1e-9), name
        assert after[name].mapped >= less.mapped, name
        assert after[name].anonymous >= 0.99 * less.anonymous, name
    # With more nodes the degree falls, and with it what a batch reads.
    with_nodes = stages_of(graph=size(nodes=nodes + more[0], edges=edges, features=features))
    for name, less in before.items():
        assert with_nodes[name].cpu >= less.cpu * (1 - 1e-9), name
        assert with_nodes[name].mapped >= less.mapped, name

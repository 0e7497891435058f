"""Settings and graphs -> the batches that will be built, and what every rank will hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llcg_dist.config.facts import corrects, message_passing_layers
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.doctor.batches import BatchSize, estimate_batch
from llcg_dist.doctor.memory import IMPORTS_PRIVATE, Layer, Need, evaluation_bytes, layers_of, model_bytes, step_bytes

_PER_NODE = 16
"""Bytes that a rank keeps for each node of its graph: degrees, and where its training nodes are."""


@dataclass(frozen=True)
class Plan:
    """The server's correction batch (None: there is none), the bytes of one such step, and what every rank needs."""

    correction: BatchSize | None
    correction_bytes: int
    ranks: list[Need]


def make_plan(
    config: Config, whole: Graph, parts: Sequence[Graph], trains_on_parts: bool, on_gpu: bool = False
) -> Plan:
    """`parts` are the machines' graphs. With `on_gpu` the host keeps no more of a step than the batch's features."""
    layers = layers_of(config.model, whole.num_features, whole.num_classes)
    model = model_bytes(layers)
    correction = _correction_batch(config, whole)
    correction_bytes = step_bytes(layers, correction) if correction else 0
    evaluation = evaluation_bytes(
        layers, whole.num_nodes, whole.num_edges, config.evaluate.chunk, on_disk=config.evaluate.scratch is not None
    )
    work = max(_on_host(layers, correction, on_gpu), evaluation)
    received = config.cluster.num_machines * model // 8
    own = IMPORTS_PRIVATE + 2 * model + received + 2 * _PER_NODE * whole.num_nodes
    trained = list(parts) if trains_on_parts else [whole] if config.algorithm.name == "single" else []
    local = _on_host(layers, _local_batch(config, trained, trains_on_parts), on_gpu)
    machines = [
        Need(f"part {p}", IMPORTS_PRIVATE + model + _PER_NODE * graph.num_nodes + local, mapped_bytes(graph))
        for p, graph in enumerate(trained)
    ]
    if trains_on_parts and config.cluster.backend != "loopback":
        ranks = [Need("server", own + work, mapped_bytes(whole)), *machines]
    else:  # they take turns in one process: each keeps its model, one at a time holds a batch
        kept = sum(need.private - IMPORTS_PRIVATE - local for need in machines)
        mapped = mapped_bytes(whole) + (sum(need.mapped for need in machines) if trains_on_parts else 0)
        ranks = [Need("rank 0", own + kept + max(work, local), mapped)]
    return Plan(correction, correction_bytes, ranks)


def mapped_bytes(graph: Graph) -> int:
    arrays = (graph.indptr, graph.indices, graph.features, graph.labels, graph.split)
    return sum(int(array.nbytes) for array in arrays)


def _correction_batch(config: Config, whole: Graph) -> BatchSize | None:
    if not corrects(config):
        return None
    return _batch(config, whole, config.train.server_batch_size, config.sampling.server_fanout)


def _local_batch(config: Config, trained: Sequence[Graph], trains_on_parts: bool) -> BatchSize | None:
    """That of the part with most edges stands for all."""
    if not trained:
        return None
    machines_in_one = 1 if trains_on_parts else config.cluster.num_machines
    densest = max(trained, key=lambda graph: graph.num_edges)
    return _batch(config, densest, config.train.local_batch_size * machines_in_one, config.sampling.fanout)


def _batch(config: Config, graph: Graph, batch_size: int, fanout: Any) -> BatchSize:
    fanouts = fanout if isinstance(fanout, list) else [fanout] * message_passing_layers(config.model)
    return estimate_batch(graph, graph.nodes_in(TRAIN), batch_size, fanouts, config.seed)


def _on_host(layers: Sequence[Layer], batch: BatchSize | None, on_gpu: bool) -> int:
    if batch is None:
        return 0
    return batch.inputs * layers[0].width_in * 4 if on_gpu else step_bytes(layers, batch)

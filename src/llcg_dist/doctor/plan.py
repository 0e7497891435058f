"""Predicts the correction batch and the memory of every rank from the settings and the graphs of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.algorithm import Aggregate
from llcg_dist.config.cluster import Backend
from llcg_dist.config.schema import Config
from llcg_dist.config.train import EvaluateConfig, Fanouts
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.doctor.batches import BatchSize, estimate_batch
from llcg_dist.doctor.memory import (
    IMPORTS_PRIVATE_BYTES,
    LayerCosts,
    RankMemory,
)
from llcg_dist.models.registry import structure
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.training.batchwise import is_one_batch

_COPIES_OF_MODEL = 8
"""Costs.model_bytes in terms of the weights alone."""
_BYTES_PER_NODE = 16
"""Private memory of a rank for each node of its graph: degrees and training nodes."""


@dataclass(frozen=True)
class Plan:
    """The server's correction batch (None if there is no correction), the bytes of such a step, every rank's memory."""

    correction: BatchSize | None
    correction_bytes: int
    ranks: list[RankMemory]
    exact_evaluation: bool = True
    """Whether a node's logits depend on no other node of its batch than its neighbours, or the graph is one batch."""


class Costs(Protocol):
    """What a model costs in memory."""

    @property
    def is_exact(self) -> bool:
        """Whether a number of hops gives a node's exact output."""

    def model_bytes(self) -> int: ...

    def step_bytes(self, batch: BatchSize) -> int: ...

    def evaluation_bytes(self, num_nodes: int, num_edges: int, evaluate: EvaluateConfig) -> int: ...


def costs_of(config: Config, graph: Graph) -> Costs:
    """From the model's layers; of a user's own model, from a dry run."""
    if config.model.target:
        from llcg_dist.doctor.dry_run import DryRunCosts  # imports PyG

        return DryRunCosts(config, graph)
    return LayerCosts(structure(config.model).layers(graph.num_features, config.model.hidden, graph.num_classes))


def make_plan(algorithm: Algorithm, full_graph: Graph, parts: Sequence[Graph], on_gpu: bool = False) -> Plan:
    """`parts` are the machines' graphs. With `on_gpu` a step needs host memory only for the features of its batch."""
    config, trains_on_parts = algorithm.config, algorithm.trains_on_parts
    costs = costs_of(config, full_graph)
    model = costs.model_bytes()
    correction = _correction_batch(config, full_graph)
    correction_bytes = costs.step_bytes(correction) if correction else 0
    evaluation = costs.evaluation_bytes(full_graph.num_nodes, full_graph.num_edges, config.evaluate)
    row_bytes = 4 * full_graph.num_features
    server_step = max(_on_host(costs, correction, row_bytes, on_gpu), evaluation)
    kept = received_bytes(config, model)
    server_base = IMPORTS_PRIVATE_BYTES + 2 * model + kept + 2 * _BYTES_PER_NODE * full_graph.num_nodes
    trained = list(parts) if trains_on_parts else [full_graph] * algorithm.num_machines
    local_step = _on_host(costs, _local_batch(algorithm, trained), row_bytes, on_gpu)
    machine_base = [model + _BYTES_PER_NODE * graph.num_nodes for graph in trained]
    mapped = [mapped_bytes(graph) for graph in trained]
    if trains_on_parts and config.cluster.backend != Backend.loopback:
        machines = [
            RankMemory(f"part {p}", IMPORTS_PRIVATE_BYTES + base + local_step, files)
            for p, (base, files) in enumerate(zip(machine_base, mapped, strict=True))
        ]
        ranks = [RankMemory("server", server_base + server_step, mapped_bytes(full_graph)), *machines]
    else:  # one process: every machine keeps its model, and one at a time holds a batch
        private = server_base + sum(machine_base) + max(server_step, local_step)
        ranks = [RankMemory("rank 0", private, mapped_bytes(full_graph) + (sum(mapped) if trains_on_parts else 0))]
    exact = costs.is_exact or is_one_batch(full_graph, config.evaluate.chunk)
    return Plan(correction, correction_bytes, ranks, exact)


def received_bytes(config: Config, model: int) -> int:
    """What the server holds of the machines' models, one of which with all that it is trained with takes `model` bytes:
    all P as they came. aggregate=learned also has each of them cut into layers, and a model to take gradients of."""
    received = config.cluster.num_machines * model // _COPIES_OF_MODEL
    return 2 * received + model if config.algorithm.aggregate == Aggregate.learned else received


def mapped_bytes(graph: Graph) -> int:
    """The size of a graph's arrays, which ranks map from files."""
    arrays = (graph.indptr, graph.indices, graph.features, graph.labels, graph.split)
    return sum(int(array.nbytes) for array in arrays)


def _correction_batch(config: Config, full_graph: Graph) -> BatchSize | None:
    if not config.algorithm.draws_at_server:
        return None
    return _batch(config, full_graph, config.train.server_batch_size, config.sampling.server_fanout)


def _local_batch(algorithm: Algorithm, trained: Sequence[Graph]) -> BatchSize | None:
    """The batch size in the part with the most edges, taken for all parts; None if no machine trains."""
    if not trained:
        return None
    densest = max(trained, key=lambda graph: graph.num_edges)
    return _batch(algorithm.config, densest, algorithm.local_batch_size, algorithm.config.sampling.fanout)


def _batch(config: Config, graph: Graph, batch_size: int, fanout: Fanouts) -> BatchSize:
    fanouts = fanouts_per_layer(fanout, structure(config.model).depth)
    return estimate_batch(graph, graph.nodes_in(TRAIN), batch_size, fanouts, config.seed)


def _on_host(costs: Costs, batch: BatchSize | None, row_bytes: int, on_gpu: bool) -> int:
    """Host memory of one gradient step on this batch."""
    if batch is None:
        return 0
    return batch.inputs * row_bytes if on_gpu else costs.step_bytes(batch)

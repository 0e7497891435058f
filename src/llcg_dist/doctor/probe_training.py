"""Measures what steps and an evaluation take on this host, by the code that ranks run and with the user's model.

The graphs are drawn, with the degree, the features and (up to a limit) the nodes of the user's: rows are then looked up
as far away in memory as they will be.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.train import Fanouts
from llcg_dist.data.csr import index_dtype
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from llcg_dist.data.views import GraphView
from llcg_dist.doctor.batches import expected_batch
from llcg_dist.doctor.plan import Costs, costs_of
from llcg_dist.doctor.probe_files import cpu_seconds
from llcg_dist.doctor.rates import TrainingRates
from llcg_dist.doctor.sizes import GraphSize
from llcg_dist.models import build_model
from llcg_dist.models.registry import structure
from llcg_dist.models.samplers import sampler_for
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.training.evaluation import EvaluationSettings, Evaluator
from llcg_dist.training.fill_plan import seconds_of_step
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.threads import prepare_computing
from llcg_dist.training.trainer import StepSettings, Trainer

_TABLE_BYTES = 1 << 27
"""Of features, or of a hidden state, in a drawn graph: several times what caches hold."""
_ENTRIES = 1 << 22
_FEWEST_NODES = 8
"""Of a drawn graph: BatchNorm needs more than one row."""
_ALL_NEIGHBOURS = -1


def drawn_training_graph(size: GraphSize, num_nodes: int, degree: float, entries: int) -> Graph:
    """Its first nodes have `degree` neighbours each, at random, until there are `entries`; the others have none."""
    rng, each = np.random.default_rng(0), max(1, round(degree))
    rows = max(1, min(num_nodes, entries // each))
    dtype = index_dtype(num_nodes, rows * each)
    indptr = np.minimum(np.arange(num_nodes + 1), rows) * each
    split = np.full(num_nodes, TEST, np.int8)
    split[rng.random(num_nodes) < size.train_share] = TRAIN
    split[: _FEWEST_NODES // 2], split[-1] = TRAIN, VAL
    return Graph(
        indptr.astype(dtype),
        rng.integers(num_nodes, size=rows * each, dtype=dtype),
        rng.standard_normal((num_nodes, size.features), dtype=np.float32).astype(f"f{size.stored_bytes}"),
        rng.integers(size.classes, size=num_nodes),
        split,
        max(2, size.classes),
    )


def measure_training(algorithm: Algorithm, size: GraphSize) -> tuple[TrainingRates, Costs]:
    """(what steps and an evaluation take; the memory of the model, which a drawn graph is enough to know)."""
    prepare_computing(threads=1)
    config, machines = algorithm.config, algorithm.config.cluster.num_machines
    part = replace(size, nodes=size.nodes // machines, edges=size.edges // machines)
    costs = costs_of(config, drawn_training_graph(size, 1000, min(10.0, size.degree), 10_000))
    local = _step(algorithm, part, costs, algorithm.local_batch_size, config.sampling.fanout)
    server = 0.0
    if config.algorithm.corrects:
        server = _step(algorithm, size, costs, config.train.server_batch_size, config.sampling.server_fanout)
    return TrainingRates(local, server, *_evaluation(algorithm, size)), costs


def _step(algorithm: Algorithm, size: GraphSize, costs: Costs, batch_size: int, fanout: Fanouts) -> float:
    """Seconds of a step: of one on a drawn graph, by what the two hold where that is smaller than the user's."""
    config = algorithm.config
    fanouts = fanouts_per_layer(fanout, structure(config.model).depth)
    degree = size.degree if _ALL_NEIGHBOURS in fanouts else min(size.degree, 2 * max([1, *fanouts]))
    limits = (size.nodes, _TABLE_BYTES // (4 * size.features), round(_ENTRIES / max(1.0, degree)))
    nodes = max(_FEWEST_NODES, min(limits))
    graph = drawn_training_graph(size, nodes, degree, _ENTRIES)
    model = build_model(config.model, graph.num_features, graph.num_classes)
    view, sampler = GraphView(graph), sampler_for(model, GraphView(graph).topology, fanout)
    settings = StepSettings(stream=0, seed=0, batch_size=batch_size, lr=config.train.local_lr)
    taken = seconds_of_step(Trainer(view, model, sampler, settings, config.train), flatten(model))
    here, there = (
        costs.step_bytes(expected_batch(count, size.degree, size.train_share, batch_size, fanouts))
        for count in (nodes, max(_FEWEST_NODES, size.nodes))
    )
    return taken * there / here


def _evaluation(algorithm: Algorithm, size: GraphSize) -> tuple[float, float]:
    """Seconds of a node and of an entry: of two graphs that differ in their entries, of which one has nearly none."""
    config = algorithm.config
    width = max(size.features, config.model.hidden, size.classes)
    nodes = max(_FEWEST_NODES, min(size.nodes, _TABLE_BYTES // (4 * width)))
    whole = drawn_training_graph(size, nodes, size.degree, max(2, min(_ENTRIES, round(nodes * size.degree))))
    entries, few = len(whole.indices), max(1, len(whole.indices) // 100)
    taken = []
    for graph in (replace(whole, indptr=np.minimum(whole.indptr, few), indices=whole.indices[:few]), whole):
        model = build_model(config.model, graph.num_features, graph.num_classes)
        evaluator = Evaluator(graph, model, EvaluationSettings.of(config, threads=1))
        taken.append(cpu_seconds(partial(evaluator.evaluate, flatten(model))))
    of_entry = max(0.0, taken[1] - taken[0]) / max(1, entries - few)
    return max(0.0, taken[1] - of_entry * entries) / nodes, of_entry

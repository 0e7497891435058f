"""Predicts the bytes that each method sends a round: parameters and gradients exactly, features by sampling."""

from dataclasses import dataclass

import numpy as np

from llcg_dist import seeding
from llcg_dist.algorithms.registry import ALGORITHMS, build_algorithm
from llcg_dist.algorithms.traffic import MessageBytes, RoundTraffic
from llcg_dist.comm.codec import CODECS
from llcg_dist.comm.remote_rows import COUNT_BYTES
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array
from llcg_dist.models import build_model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.sampling.minibatch import Sampler
from llcg_dist.training.flat_vector import statistics_mask

_BATCHES_PER_PART = 4
_MAX_SAMPLED_EDGES = 20_000_000
"""Sampling stops here even if fewer batches than planned were drawn: with full neighbourhoods one batch may be the
entire graph."""


@dataclass(frozen=True)
class RemoteRows:
    """The mean number of feature rows that a step reads from other parts, over this many sampled batches."""

    per_step: float
    batches: int


def predict_traffic(config: Config, full_graph: Graph, assignment: Array) -> tuple[dict[str, RoundTraffic], RemoteRows]:
    """Traffic of every method with these settings: the same steps a round, batch size and fan-out."""
    model = build_model(config.model, full_graph.num_features, full_graph.num_classes)
    codec = CODECS[config.algorithm.exchange_dtype](statistics_mask(model))
    sampler = sampler_for(model, full_graph, config.sampling.fanout, config.sampling.method)
    remote = count_remote_rows(config, full_graph, assignment, sampler)
    row_bytes = full_graph.features.itemsize * full_graph.num_features + full_graph.indices.itemsize
    sizes = MessageBytes(
        model=codec.elements * codec.dtype.itemsize,
        statistics=4 * len(codec.statistics),
        gradients=4 * sum(weight.numel() for weight in model.parameters() if weight.requires_grad),
        features_per_step=remote.per_step * row_bytes + (config.cluster.num_machines - 1) * COUNT_BYTES,
    )
    return traffic_of_methods(config, sizes), remote


def traffic_of_methods(config: Config, sizes: MessageBytes) -> dict[str, RoundTraffic]:
    """By name, for methods that train on parts; one name for each class of method, and the user's own if it is set."""
    kinds = {kind: name for name, kind in reversed(ALGORITHMS.items()) if kind.trains_on_parts}
    traffic = {name: kind(config).traffic(sizes) for kind, name in reversed(kinds.items())}
    if config.algorithm.target:
        traffic[config.algorithm.label] = build_algorithm(config).traffic(sizes)
    return traffic


def count_remote_rows(config: Config, full_graph: Graph, assignment: Array, sampler: Sampler) -> RemoteRows:
    """Samples batches of each part's training nodes in the full graph, part after part.

    Deterministic for a seed.
    """
    machines = config.cluster.num_machines
    candidates = [np.flatnonzero((assignment == part) & (full_graph.split == TRAIN)) for part in range(machines)]
    counts: list[int] = []
    edges = 0
    for number in range(_BATCHES_PER_PART * machines):
        part = number % machines
        rng = seeding.generator(config.seed, seeding.part_stream(part), number)
        size = min(config.train.local_batch_size, len(candidates[part]))
        if size == 0:
            continue
        seeds = rng.choice(candidates[part], size, replace=False)
        sample = sampler.sample(seeds, seed=int(rng.integers(2**31)))
        counts.append(int((assignment[sample.nodes.numpy()] != part).sum()))
        edges += sample.num_edges
        if edges > _MAX_SAMPLED_EDGES:
            break
    return RemoteRows(float(np.mean(counts)) if counts else 0.0, len(counts))

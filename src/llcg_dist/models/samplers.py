"""The sampler that a model's mini-batches come from: blocks, or a subgraph."""

from llcg_dist.config.train import Fanout, Fanouts, SamplingMethod
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph
from llcg_dist.models.base import Model
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler, SubgraphSampler


def sampler_for(
    model: Model, topology: Graph | Topology, fanout: Fanouts, method: str = SamplingMethod.neighbor
) -> NeighborSampler:
    """Samples as many hops as the model reads, `fanout` neighbours of a node; a list has a fan-out for every hop."""
    return _kind(model)(topology, fanouts_per_layer(fanout, model.depth), method)


def all_neighbours_sampler(model: Model, topology: Graph | Topology) -> NeighborSampler:
    """Takes all neighbours, as many hops as the exact output needs."""
    fanouts: list[Fanout] = [-1] * model.exact_hops
    return _kind(model)(topology, fanouts)


def _kind(model: Model) -> type[NeighborSampler]:
    return SubgraphSampler if model.reads_subgraph else NeighborSampler

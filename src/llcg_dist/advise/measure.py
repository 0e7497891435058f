"""What is measured of the graph besides the pilots: its parts, the noise of its gradients, how well they align."""

from dataclasses import dataclass

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import PartitionQuality
from llcg_dist.data.graph import Graph
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.rows import Array
from llcg_dist.data.store import read_shard
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.auto_s import StepChooser
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.noise_scale import measure_noise_scale

_BATCHES = 32


@dataclass(frozen=True)
class Parts:
    """The parts that a candidate trains on."""

    graph: Graph
    assignment: Array
    quality: PartitionQuality


def cut(config: Config) -> Parts:
    """Writes the parts where they are missing, as training would."""
    store, _ = ensure_store(config)
    shard = read_shard(store / "global")
    assignment = shard.extra["assignment"]
    return Parts(shard.graph, assignment, PartitionQuality.of(shard.graph, assignment, config.cluster.num_machines))


def initial_model(config: Config, graph: Graph) -> Model:
    """The model that a run with these settings begins with."""
    seeding.seed_torch(seeding.generator(config.seed, seeding.INITIAL_WEIGHTS_STREAM, 0))
    return build_model(config.model, graph.num_features, graph.num_classes)


def noise(config: Config, graph: Graph, state: dict[str, Tensor] | None) -> float:
    """The gradient noise scale in examples, at a saved model or (None) at the one that training begins with."""
    model = initial_model(config, graph)
    if state is not None:
        model.load_state_dict(state)
    view = GraphView(graph)
    sampler = sampler_for(model, view.topology, config.sampling.fanout, config.sampling.method)
    rng = seeding.diagnostics_generator(config.seed, seeding.SERVER_STREAM, 0)
    return measure_noise_scale(model, view, sampler, config.train.local_batch_size, _BATCHES, rng)


def alignment(config: Config, parts: Parts, state: dict[str, Tensor]) -> float:
    """The cosine in 0..1 between the gradients with and without cut edges, at a saved model."""
    model = initial_model(config, parts.graph)
    model.load_state_dict(state)
    chooser = StepChooser(config, parts.graph, parts.assignment, config.algorithm.K)
    return float(chooser.choose(flatten(model), 0)[1]["auto_s_alignment"])

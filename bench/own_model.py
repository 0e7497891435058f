"""What does a model of one's own cost, against the same layers on our blocks? A step, and a pass over the whole graph:

    python -m bench.own_model [--repeats 9] [--steps 8]

GraphSAGE with BatchNorm, one thread, the graph and batches of bench.local_step: `model=sage` on blocks, and PyG's
module as `model=own` on sampled subgraphs. PyG's module trims what a layer has no use for, but its first layer computes
every node of the subgraph where ours computes those that the second reads, and torch's dropout draws every number.
"""

from functools import partial

from torch import Tensor

from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from bench.local_step import SETTINGS, repeats_and_steps
from bench.step_contenders import Steps
from llcg_dist import seeding
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.full_forward import full_forward
from llcg_dist.training.threads import prepare_computing
from llcg_dist.training.trainer import StepSettings, Trainer

HIDDEN = (256, 64)
OWN = ["model=own", "model.target=torch_geometric.nn.GraphSAGE", "model.options.num_layers=3"]
OWN += ["model.options.norm=batch_norm", "model.options.dropout=0.5"]
NODES_EVALUATED = 10_000
"""Of a graph that is one batch: three hops of all neighbours would be the whole graph for every node."""


def main() -> None:
    arguments = repeats_and_steps(__doc__)
    prepare_computing(threads=1)
    graph = load_dataset(load_config(SETTINGS).dataset)
    small = load_dataset(load_config([*SETTINGS, f"dataset.nodes={NODES_EVALUATED}"]).dataset)
    rows, claims = [], []
    for hidden in HIDDEN:
        ours = load_config([*SETTINGS, f"model.hidden={hidden}"])
        own = load_config([*SETTINGS, *OWN, f"model.options.hidden_channels={hidden}"])
        turns = {name: partial(_steps(config, graph), arguments.steps) for name, config in _named(ours, own)}
        steps = interleaved(turns, arguments.repeats)
        passes = interleaved({name: _pass(config, small) for name, config in _named(ours, own)}, 3)
        for name in turns:
            step = Spread.of([1e3 * second / arguments.steps for second in steps[name]])
            rows.append([f"{name}, hidden {hidden}", step, Spread.of(passes[name])])
        cost = ratio(steps["model=own"], steps["model=sage"])
        claims.append(Claim(f"hidden {hidden}: a step of model=own / model=sage", cost))
    head = ["GraphSAGE, 3 layers", "ms a step", f"seconds to evaluate {NODES_EVALUATED:,} nodes"]
    publish("own_model", table(head, rows), claims)


def _named(ours: Config, own: Config) -> list[tuple[str, Config]]:
    return [("model=sage", ours), ("model=own", own)]


def _steps(config: Config, graph: Graph) -> Steps:
    """A machine's local steps."""
    model = build_model(config.model, graph.num_features, graph.num_classes)
    view, train = GraphView(graph), config.train
    settings = StepSettings(seeding.part_stream(0), config.seed, train.local_batch_size, train.local_lr)
    trainer = Trainer(view, model, sampler_for(model, view.topology, config.sampling.fanout), settings, train)
    trainer.begin_round(None, 1)

    def steps(count: int) -> None:
        for _ in range(count):
            trainer.backward()
            trainer.optimizer_step()

    return steps


def _pass(config: Config, graph: Graph) -> partial[Tensor]:
    """An evaluation of every node."""
    model = build_model(config.model, graph.num_features, graph.num_classes)
    return partial(full_forward(graph, model, config.evaluate.chunk).logits)


if __name__ == "__main__":
    main()

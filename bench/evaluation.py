"""How long one evaluation of a model on a whole graph takes, against the least that it could:

    python -m bench.evaluation [--nodes 2449029] [--repeats 3]

As large as ogbn-products: 2,449,029 nodes with 50 neighbours each, 100 features, 47 classes; 3 SAGE layers, hidden 64,
BatchNorm recalibrated on the way. Wants two idle cores; threads that share theirs are many times slower.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from llcg_dist.config.compose import load_config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.models import build_model
from llcg_dist.models.products import sparse_product
from llcg_dist.models.stages import GraphModel, ProductLayer
from llcg_dist.sampling.block import block_with_global_columns, degrees
from llcg_dist.training.chunks import chunk_bounds
from llcg_dist.training.hidden_states import HiddenStates
from llcg_dist.training.layerwise import FullGraphForward
from llcg_dist.training.threads import prepare_computing, using_threads

SETTINGS = ["dataset.features=100", "dataset.degree=50", "dataset.classes=47", "model.layers=3", "model.hidden=64"]
WHOLE, LESS = "evaluation", "order chosen by chunk"
TWO, ROUNDED, FLOOR = "evaluation, two threads", "evaluation, bfloat16 states", "floor"
MOST_APART = 1e-4


class OrderByChunk(FullGraphForward):
    """The order of a layer's products is chosen for every chunk by itself, where weights first would map all rows of
    the graph once a chunk: neighbours come first from about ten chunks on. On fewer, its bits are those of the
    evaluation, and comparing them says nothing."""

    def _maps_first(self, *given: object) -> bool:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2_449_029)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    prepare_computing(threads=1)
    config = load_config([*SETTINGS, f"dataset.nodes={arguments.nodes}"])
    graph = load_dataset(config.dataset)
    torch.manual_seed(0)
    model = build_model(config.model, graph.num_features, graph.num_classes)
    assert isinstance(model, GraphModel)
    passes = contenders(graph, model, config.evaluate.chunk)
    seconds = interleaved(passes, arguments.repeats)
    rows = [[name, Spread.of(values)] for name, values in seconds.items()]
    text = f"{graph.num_nodes:,} nodes, {2 * graph.num_edges:,} entries.\n\n{table(['seconds', ''], rows)}"
    publish("evaluation", text, claims(seconds, {name: passes[name]() for name in (WHOLE, LESS, TWO, ROUNDED)}))


def contenders(graph: Graph, model: GraphModel, chunk: int) -> dict[str, Callable[[], Tensor]]:
    """By name: a pass over the whole graph, and the work that no pass can do without."""
    exact = FullGraphForward(graph, model, chunk, recalibrate=True)
    rounded = FullGraphForward(graph, model, chunk, HiddenStates(None, "bfloat16"), recalibrate=True)
    before = OrderByChunk(graph, model, chunk, recalibrate=True)
    return {
        WHOLE: partial(logits_of, exact, 1),
        LESS: partial(logits_of, before, 1),
        TWO: partial(logits_of, exact, 2),
        ROUNDED: partial(logits_of, rounded, 1),
        FLOOR: floor(graph, model, chunk),
    }


def logits_of(forward: FullGraphForward, threads: int) -> Tensor:
    with using_threads(threads):
        return forward.logits()


@torch.no_grad()
def floor(graph: Graph, model: GraphModel, chunk: int) -> Callable[[], Tensor]:
    """Sums over neighbours, of rows as narrow as either order makes them, and the dense products of every layer; its
    matrices are made before it is timed, and nothing that it computes is kept."""
    bounds, degree = chunk_bounds(graph.indptr, chunk), degrees(graph)
    matrices = [block_with_global_columns(graph, degree, *bound, None).mean_adjacency for bound in bounds]
    weights = [stage.layer.weight for stage in model.each_stage() if isinstance(stage.layer, ProductLayer)]
    states = {width: torch.randn(graph.num_nodes, width) for weight in weights for width in weight.shape}

    @torch.no_grad()
    def work() -> Tensor:
        for weight in weights:
            width_out, width_in = weight.shape
            rows, added_up = states[width_in], states[min(width_in, width_out)]
            for (start, stop), matrix in zip(bounds, matrices, strict=True):
                sparse_product(matrix, added_up)
                for _map in ("own", "neighbours"):
                    rows[start:stop] @ weight.T
        return added_up

    return work


def claims(seconds: dict[str, list[float]], logits: dict[str, Tensor]) -> list[Claim]:
    whole = seconds[WHOLE]
    apart = (logits[WHOLE] - logits[LESS]).abs().max().item()
    between_threads = (logits[WHOLE] - logits[TWO]).abs().max().item()
    agree = (logits[WHOLE].argmax(dim=1) == logits[ROUNDED].argmax(dim=1)).double().mean().item()
    return [
        Claim("evaluation / floor", ratio(whole, seconds[FLOOR]), at_most=1.3),
        Claim("one thread / two", ratio(whole, seconds[TWO]), at_least=1.7),
        Claim("float32 states / bfloat16", ratio(whole, seconds[ROUNDED]), at_least=1.4),
        Claim("order chosen by chunk / evaluation", ratio(seconds[LESS], whole), at_least=1.0),
        Claim("largest difference of a logit from order chosen by chunk", Spread.of([apart]), at_most=MOST_APART),
        Claim("largest difference of a logit on two threads", Spread.of([between_threads]), at_most=0.0),
        Claim("share of nodes whose class is the same with bfloat16 states", Spread.of([agree])),
    ]


if __name__ == "__main__":
    main()

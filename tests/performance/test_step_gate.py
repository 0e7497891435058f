"""A local step stays ahead of the same step in other hands; the figures themselves are in docs/studies/performance.md.

Processor time and the best of several turns: neither knows how busy the machine is.
"""

import time
from functools import partial

import pytest
import torch
from bench.harness import interleaved
from bench.step_contenders import dgl_loop, ours, pyg_over_edges

from llcg_dist.config.compose import load_config
from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.datasets.synthetic import generate

SETTINGS = ["dataset.nodes=20000", "dataset.features=64", "model.hidden=64", "model.layers=3"]
ATTEMPTS = 4
pytestmark = pytest.mark.performance


@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_a_step_is_no_slower_than_dgls_loop_and_faster_than_pyg_over_edges() -> None:
    """Measured: 0.65 of DGL's time and of PyG's; the bounds leave room for other machines."""
    assert torch.get_num_threads() == 1, "processor time adds threads up"
    config = load_config(SETTINGS)
    assert isinstance(config.dataset, SyntheticConfig)
    graph = generate(config.dataset)
    contenders = {"ours": ours(config, graph), "dgl": dgl_loop(config, graph), "pyg": pyg_over_edges(config, graph)}
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ATTEMPTS):
        turns = {name: partial(contender, 3) for name, contender in contenders.items()}
        for name, seconds in interleaved(turns, repeats=4, clock=time.process_time).items():
            best[name] = min(best[name], *seconds)
        if best["ours"] < 1.25 * best["dgl"] and best["ours"] < best["pyg"]:
            return
    pytest.fail(f"seconds of three steps: {best}")

"""A user's own model is run once on a batch before the job: what it keeps is counted, and its mistakes are told."""

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.doctor.dry_run import DryRunCosts
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph

HELPERS = "tests.helpers.own_models"
GRAPH = community_graph(300)


def dry_run(target: str, *options: str) -> DryRunCosts:
    own = ["model=own", f"model.target={HELPERS}.{target}", "model.layers=1"]
    return DryRunCosts(load_config([*own, *options]), GRAPH)


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_matrices_are_counted_by_their_numbers(layout: str) -> None:
    batch = BatchSize(rows=[1000, 100], edges=[10_000])
    costs = dry_run("SparseProduct", f"model.options.layout={layout}")
    features_and_edges = 1000 * GRAPH.num_features * 4 + 10_000 * 40
    assert costs.step_bytes(batch) - features_and_edges > 8 * 10_000  # an index and a value for every edge, at least


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("FailsOnBatches", r"raised IndexError in the dry run, on a batch of 64 nodes: list index out of range$"),
        ("WideOnBlocks", r"forward must return \[nodes, classes\], .* not \[64, "),
    ],
)
def test_its_mistakes_are_told_in_one_line(target: str, says: str) -> None:
    with pytest.raises(UserError, match=rf"^model.target={HELPERS}.{target}: {says}"):
        dry_run(target)

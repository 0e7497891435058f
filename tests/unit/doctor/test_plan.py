"""What the ranks of a job will need."""

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.doctor.batches import estimate_batch
from llcg_dist.doctor.memory import IMPORTS_PRIVATE_BYTES, model_bytes, step_bytes
from llcg_dist.doctor.plan import Plan, make_plan
from llcg_dist.models.structure import LAYER_KINDS, Layer
from tests.helpers.graphs import community_graph

GRAPH = community_graph(300)


def plan_of(*overrides: str, graphs: int = 2) -> Plan:
    config = load_config(["cluster.num_machines=2", *overrides])
    parts: list[Graph] = [GRAPH] * graphs
    return make_plan(build_algorithm(config), GRAPH, parts)


def test_ranks_of_a_job() -> None:
    assert [need.name for need in plan_of().ranks] == ["server", "part 0", "part 1"]
    assert [need.name for need in plan_of("cluster.backend=loopback").ranks] == ["rank 0"]
    assert [need.name for need in plan_of("algorithm=single", graphs=0).ranks] == ["rank 0"]
    assert plan_of("algorithm=psgd_pa").correction is None
    all_apart, together = plan_of().ranks, plan_of("cluster.backend=loopback").ranks
    assert together[0].private < sum(need.private for need in all_apart) / 2
    assert together[0].mapped == sum(need.mapped for need in all_apart)


@pytest.mark.parametrize("hidden", [64, 4096])
def test_a_machine_needs_imports_its_model_its_nodes_and_a_step(hidden: int) -> None:
    config = load_config(["cluster.num_machines=2", f"model.hidden={hidden}", "sampling.fanout=[3,4]"])
    layers = [Layer(LAYER_KINDS["S"], GRAPH.num_features, hidden), Layer(LAYER_KINDS["S"], hidden, GRAPH.num_classes)]
    batch = estimate_batch(GRAPH, GRAPH.nodes_in(TRAIN), config.train.local_batch_size, [3, 4], config.seed)
    expected = IMPORTS_PRIVATE_BYTES + model_bytes(layers) + 16 * 300 + step_bytes(layers, batch)
    server, *machines = plan_of(f"model.hidden={hidden}", "sampling.fanout=[3,4]").ranks
    assert [need.private for need in machines] == [expected, expected]
    # The server has a model to evaluate, one to correct with, and room for what both machines send.
    assert server.private > IMPORTS_PRIVATE_BYTES + 2 * model_bytes(layers) + 2 * model_bytes(layers) // 8


def test_mapped_files_are_those_of_the_graph() -> None:
    arrays = (GRAPH.indptr, GRAPH.indices, GRAPH.features, GRAPH.labels, GRAPH.split)
    assert {need.mapped for need in plan_of().ranks} == {sum(array.nbytes for array in arrays)}

"""Memory: sums by hand, and the rules on what is free."""

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import Graph
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.doctor.findings import ERROR, OK, WARN, size
from llcg_dist.doctor.memory import Layer, Need, evaluation_bytes, layers_of, model_bytes, step_bytes
from llcg_dist.doctor.memory_rules import check_correction, check_memory
from llcg_dist.doctor.plan import Plan, make_plan
from llcg_dist.models import build_model
from tests.helpers.doctor_facts import levels, only
from tests.helpers.graphs import community_graph

GB = 1_000_000_000
GRAPH = community_graph(300)


@pytest.mark.parametrize("name", ["sage", "gcn", "mlp", "gat", "appnp", "resgcn", "skip_sage"])
def test_layers_are_those_of_the_model_that_is_built(name: str) -> None:
    config = load_config([f"model={name}", "model.hidden=256", "model.layers=3"]).model
    layers, model = layers_of(config, 100, 50), build_model(config, 100, 50)
    assert sum(layer.reads_neighbours for layer in layers) == model.depth
    assert [layer.reads_neighbours for layer in layers] == [stage.reads_neighbours for stage in model.each_stage()]
    parameters = 4 * sum(weight.numel() for weight in model.parameters())
    # Weights, gradients, two moments, and the copies: eight in all. APPNP's propagation has no weights of its own.
    assert 8 * parameters <= model_bytes(layers) * 1.1
    assert name == "appnp" or model_bytes(layers) <= 8 * parameters * 1.1


def test_a_step_by_hand() -> None:
    gcn = [Layer("G", 10, 4), Layer("G", 4, 2)]
    batch = BatchSize(rows=[100, 20, 5], edges=[300, 40])
    first = 100 * 10 * 4 + 300 * 24 + 100 * 16 + 100 * 4 * 4 + 20 * 4 * 4 * 2
    second = 20 * 4 * 4 * 4 + 40 * 24 + 20 * 16 + 20 * 2 * 4 + 5 * 2 * 4 * 2
    assert step_bytes(gcn, batch) == first + second
    attention = [Layer("A", 10, 4), Layer("A", 4, 2)]
    assert step_bytes(attention, batch) - step_bytes(gcn, batch) == 300 * 4 * 4 * 2 + 40 * 2 * 4 * 2


def test_evaluation_is_bounded_by_its_chunks_and_states_on_disk_cost_nothing() -> None:
    layers = [Layer("S", 100, 64), Layer("S", 64, 8)]
    million = 1_000_000
    whole, small = (evaluation_bytes(layers, million, 8 * million, chunk, on_disk=False) for chunk in (million, 1_000))
    states = million * (64 + 8) * 4
    assert whole > small >= states
    assert small < 1.2 * states
    assert evaluation_bytes(layers, million, 8 * million, 1_000, on_disk=True) < 0.1 * states


def plan_of(*overrides: str, graphs: int = 2) -> Plan:
    config = load_config(["cluster.num_machines=2", *overrides])
    parts: list[Graph] = [GRAPH] * graphs
    return make_plan(config, GRAPH, parts, trains_on_parts=graphs > 0)


def test_ranks_of_a_job() -> None:
    assert [need.name for need in plan_of().ranks] == ["server", "part 0", "part 1"]
    assert [need.name for need in plan_of("cluster.backend=loopback").ranks] == ["rank 0"]
    assert [need.name for need in plan_of("algorithm=single", graphs=0).ranks] == ["rank 0"]
    assert plan_of("algorithm=psgd_pa").correction is None
    all_apart, together = plan_of().ranks, plan_of("cluster.backend=loopback").ranks
    assert together[0].private < sum(need.private for need in all_apart) / 2
    assert together[0].mapped == sum(need.mapped for need in all_apart)


def test_a_wider_model_needs_more_everywhere() -> None:
    for narrow, wide in zip(plan_of().ranks, plan_of("model.hidden=4096").ranks, strict=True):
        assert wide.private > narrow.private


def test_memory_against_what_is_there() -> None:
    ranks = [Need("server", 4 * GB, 2 * GB), Need("part 0", 2 * GB, 1 * GB)]  # 6.3 GB, 9.3 with files
    assert levels(check_memory(ranks, 64 * GB, 60 * GB)) == {OK}
    assert "disk again" in only(check_memory(ranks, 64 * GB, 8 * GB), WARN).what
    assert "end what else runs here" in only(check_memory(ranks, 64 * GB, 6 * GB), WARN).advice
    finding = only(check_memory(ranks, 5 * GB, 4 * GB), ERROR)
    assert "5.0 GB in all" in finding.what
    assert "several hosts" in finding.advice
    assert levels(check_memory(ranks, 6 * GB, 5 * GB)) == {OK, WARN}, "a prediction that may be off refuses no job"


def test_a_correction_that_takes_most_of_the_memory_or_of_the_graph_is_a_warning() -> None:
    config = load_config([])

    def findings(rows: int, needed: int) -> list:
        return check_correction(config, Plan(BatchSize([rows, 256], [10]), needed, []), 1_000_000, free=10 * GB)

    assert levels(findings(rows=400_000, needed=4 * GB)) == {OK}
    assert levels(findings(rows=900_000, needed=GB // 10)) == {OK}
    assert "90 % of the graph" in only(findings(rows=900_000, needed=GB), WARN).what
    finding = only(findings(rows=1_000, needed=6 * GB), WARN)
    assert "1,000 rows" in finding.what
    assert "6.0 GB" in finding.what
    assert "sampling.server_fanout=10" in finding.advice
    assert check_correction(config, Plan(None, 0, []), 1_000_000, free=1) == []


def test_sizes_are_read_easily() -> None:
    assert [size(n) for n in (12, 6_000, 310_000_000, 1_520_000_000)] == ["12 B", "6.0 KB", "310 MB", "1.5 GB"]

"""What the rules make of predicted memory and of what is free."""

from llcg_dist.config.compose import load_config
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.doctor.findings import ERROR, OK, WARN
from llcg_dist.doctor.memory import RankMemory
from llcg_dist.doctor.memory_rules import check_correction, check_memory
from llcg_dist.doctor.plan import Plan
from tests.helpers.doctor_facts import levels, only

GB = 1_000_000_000


def test_memory_against_what_is_there() -> None:
    ranks = [RankMemory("server", 4 * GB, 2 * GB), RankMemory("part 0", 2 * GB, 1 * GB)]  # 6.3 GB, 9.3 with files
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

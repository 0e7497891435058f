"""The wire audit over real processes: every byte is explained, and one tensor past the channel is not."""

import json
from pathlib import Path

import pytest

from llcg_dist.cli import main
from llcg_dist.comm.audit import Reading
from llcg_dist.comm.audit import verdict as verdict_on
from tests.helpers.jobs import Outcome
from tests.helpers.ranks.leaks import LEAKED_BYTES
from tests.helpers.run_files import rows, summary, wire
from tests.helpers.training import train_in_process, train_in_ranks

Audited = tuple[Path, Outcome, list[int]]
"""The folder of the runs, what the ranks printed, and the exit code of each job."""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Jobs of a server and two machines, two of which leak; each has a process group of its own."""
    root = tmp_path_factory.mktemp("audited")
    common = ["experiment=tiny", "dataset.features=64", "cluster.audit=true", f"partition.root={root}/parts"]
    jobs = [
        ["algorithm=ggs", "num_rounds=6", f"run_dir={root}/ggs"],
        ["algorithm=full_sync", "num_rounds=6", f"run_dir={root}/full_sync"],
        ["num_rounds=2", f"run_dir={root}/resumed"],
        ["num_rounds=5", f"run_dir={root}/resumed"],
        [f"run_dir={root}/machines"],
        [f"run_dir={root}/machines"],  # a finished run, as a restart finds it
        [f"run_dir={root}/store"],
    ]
    outcome, codes = train_in_ranks(root, [[*common, *job] for job in jobs], leaks={4: "machines", 6: "store"})
    return root, outcome, codes


def test_only_the_leaks_fail(audited: Audited) -> None:
    _, _, codes = audited
    assert codes == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("method", ["ggs", "full_sync"])
def test_fetched_features_and_gradients_are_accounted_for(audited: Audited, method: str) -> None:
    found = wire(audited[0] / method)["audit"]
    assert found["passed"]
    assert found["ledger_bytes"] > 1_000_000
    assert found["socket_bytes_sent"] == found["socket_bytes_received"]
    assert 0 < found["difference"] <= found["tolerance"] < 0.05 * found["ledger_bytes"]
    assert 0 < found["store_bytes"] <= found["store_allowance"]
    assert 0 < found["joining_bytes"] <= found["joining_allowance"]
    assert len(found["ranks"]) == 3


@pytest.mark.parametrize("method", ["ggs", "full_sync", "resumed"])
def test_kinds_add_up_by_round_and_in_total(audited: Audited, method: str) -> None:
    run_dir = audited[0] / method
    found, total = rows(run_dir), summary(run_dir)
    detail = wire(run_dir)["bytes_in_detail"]
    assert total["bytes_in_detail"] == detail
    for row in found:
        assert row["feature_id_bytes"] + row["feature_row_bytes"] == row["feature_bytes"]
    assert {kind: sum(ways.values()) for kind, ways in detail.items()} == wire(run_dir)["bytes_by_kind"]
    assert detail["parameters"] == {way: sum(row[f"bytes_{way}"] for row in found) for way in ("up", "down")}
    assert sum(detail["gradients"].values()) == sum(row["gradient_bytes"] for row in found)
    assert detail["features"].get("row numbers", 0) == sum(row["feature_id_bytes"] for row in found)
    assert detail["features"].get("rows", 0) == sum(row["feature_row_bytes"] for row in found)
    assert total["control_mb_per_round"] * 1e6 * len(found) == pytest.approx(sum(row["control_bytes"] for row in found))
    assert (detail["features"] == {}) == (method == "resumed")
    assert (detail["gradients"] == {}) == (method != "full_sync")


def test_a_resumed_run_is_audited_for_what_it_sent_itself(audited: Audited) -> None:
    found, total = wire(audited[0] / "resumed")["audit"], summary(audited[0] / "resumed")["total_bytes"]
    assert found["passed"]
    assert found["after_round"] == 2
    assert 0.5 * total < found["ledger_bytes"] < 0.7 * total


def test_a_tensor_past_the_channel_is_found_and_its_place_named(audited: Audited) -> None:
    root, outcome, _ = audited
    found = wire(root / "machines")["audit"]
    assert not found["passed"]
    assert LEAKED_BYTES <= found["difference"] <= LEAKED_BYTES + found["tolerance"] + 144
    line = f"the sockets sent {found['socket_bytes_sent']:,} and received {found['socket_bytes_received']:,} bytes"
    failures = [text for text in outcome.err.splitlines() if line in text]
    assert len(failures) == 2  # the job, and the one that found it finished
    assert all("rank 0 (server): wire audit failed" in text and "at rank 2, which" in text for text in failures)
    assert (root / "machines" / "model.pt").exists()
    assert summary(root / "machines")["num_rounds"] == 3


def test_nothing_hides_behind_the_heartbeats(audited: Audited) -> None:
    root, outcome, _ = audited
    found = wire(root / "store")["audit"]
    assert not found["passed"]
    assert 0 <= found["difference"] <= found["tolerance"]
    assert found["store_bytes"] > LEAKED_BYTES
    assert f"the job's store moved {found['store_bytes']:,} bytes" in outcome.err


def test_a_finished_run_is_not_passed_off_as_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["experiment=tiny", f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run"]
    train_in_process(*settings)
    assert main.run(["train", *settings]) == 0
    assert main.run(["train", *settings, "cluster.audit=true"]) == 2
    assert "a finished run that was not audited" in capsys.readouterr().err
    reading = Reading(900, 900, 100, 0, 2, 0, 0, 0, 0)
    for counted, code in ((1800, 0), (200, 1)):
        content = json.dumps({"audit": verdict_on([reading, reading], counted, messages=2)})
        (tmp_path / "run" / "wire.json").write_text(content)
        assert main.run(["train", *settings, "cluster.audit=true"]) == code
    error = capsys.readouterr().err
    assert error.startswith("llcg: error: wire audit failed: the sockets sent 1,800")
    assert error.count("\n") == 1

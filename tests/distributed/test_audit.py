"""The wire audit over real processes: every byte is explained, and one tensor past the channel is not."""

import json
from pathlib import Path

import pytest

from llcg_dist import train
from llcg_dist.cli import main
from llcg_dist.comm.audit import Reading
from llcg_dist.comm.audit import verdict as verdict_on
from llcg_dist.config.compose import load_config
from tests.distributed.audited import LEAKED
from tests.helpers.jobs import Outcome, rows, summary, torchrun

TINY = ["experiment=tiny", "dataset.features=64", "cluster.audit=true"]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome, list[int]]:
    """Jobs of a server and two machines, all in the same three processes."""
    root = tmp_path_factory.mktemp("audited")

    def job(name: str, *overrides: str, leak: str | None = None) -> dict:
        settings = [*TINY, f"partition.root={root}/parts", *overrides, f"run_dir={root}/{name}"]
        return {"overrides": settings, "leak": leak}

    jobs = [
        job("ggs", "algorithm=ggs", "num_rounds=6"),
        job("full_sync", "algorithm=full_sync", "num_rounds=6"),
        job("resumed", "num_rounds=2"),
        job("resumed", "num_rounds=5"),
        job("machines", leak="machines"),
        job("machines"),  # a finished run, as a restart finds it
        job("store", leak="store"),
    ]
    (root / "jobs.json").write_text(json.dumps(jobs))
    outcome = torchrun(3, str(Path(__file__).with_name("audited.py")), str(root / "jobs.json"))
    assert outcome.code == 0, outcome.err
    return root, outcome, json.loads((root / "jobs.json.codes").read_text())


def verdict(run_dir: Path) -> dict:
    return json.loads((run_dir / "wire.json").read_text())["audit"]


def test_only_the_leaks_fail(audited: tuple[Path, Outcome, list[int]]) -> None:
    _, _, codes = audited
    assert codes == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("method", ["ggs", "full_sync"])
def test_fetched_features_and_gradients_are_accounted_for(
    audited: tuple[Path, Outcome, list[int]], method: str
) -> None:
    run_dir = audited[0] / method
    found = verdict(run_dir)
    assert found["passed"]
    assert found["ledger_bytes"] > 1_000_000
    assert found["socket_bytes_sent"] == found["socket_bytes_received"]
    assert 0 < found["difference"] <= found["tolerance"] < 0.05 * found["ledger_bytes"]
    assert 0 < found["store_bytes"] <= found["store_allowance"]
    assert 0 < found["joining_bytes"] <= found["joining_allowance"]
    assert len(found["ranks"]) == 3


@pytest.mark.parametrize("method", ["ggs", "full_sync", "resumed"])
def test_kinds_add_up_by_round_and_in_total(audited: tuple[Path, Outcome, list[int]], method: str) -> None:
    run_dir = audited[0] / method
    wire, found, total = json.loads((run_dir / "wire.json").read_text()), rows(run_dir), summary(run_dir)
    detail = wire["bytes_in_detail"]
    assert total["bytes_in_detail"] == detail
    for row in found:
        assert row["feature_id_bytes"] + row["feature_row_bytes"] == row["feature_bytes"]
    assert {kind: sum(ways.values()) for kind, ways in detail.items()} == wire["bytes_by_kind"]
    assert detail["parameters"] == {way: sum(row[f"bytes_{way}"] for row in found) for way in ("up", "down")}
    assert sum(detail["gradients"].values()) == sum(row["gradient_bytes"] for row in found)
    assert detail["features"].get("row numbers", 0) == sum(row["feature_id_bytes"] for row in found)
    assert detail["features"].get("rows", 0) == sum(row["feature_row_bytes"] for row in found)
    assert total["control_mb_per_round"] * 1e6 * len(found) == pytest.approx(sum(row["control_bytes"] for row in found))
    assert (detail["features"] == {}) == (method == "resumed")
    assert (detail["gradients"] == {}) == (method != "full_sync")


def test_a_resumed_run_is_audited_for_what_it_sent_itself(audited: tuple[Path, Outcome, list[int]]) -> None:
    found, total = verdict(audited[0] / "resumed"), summary(audited[0] / "resumed")["total_bytes"]
    assert found["passed"]
    assert found["after_round"] == 2
    assert 0.5 * total < found["ledger_bytes"] < 0.7 * total


def test_a_tensor_past_the_channel_is_found_and_its_place_named(audited: tuple[Path, Outcome, list[int]]) -> None:
    root, outcome, _ = audited
    found = verdict(root / "machines")
    assert not found["passed"]
    assert LEAKED <= found["difference"] <= LEAKED + found["tolerance"] + 144
    line = f"the sockets sent {found['socket_bytes_sent']:,} and received {found['socket_bytes_received']:,} bytes"
    failures = [text for text in outcome.err.splitlines() if line in text]
    assert len(failures) == 2  # the job, and the one that found it finished
    assert all("rank 0 (server): wire audit failed" in text and "at rank 2, which" in text for text in failures)
    assert (root / "machines" / "model.pt").exists()
    assert summary(root / "machines")["num_rounds"] == 3


def test_nothing_hides_behind_the_heartbeats(audited: tuple[Path, Outcome, list[int]]) -> None:
    root, outcome, _ = audited
    found = verdict(root / "store")
    assert not found["passed"]
    assert 0 <= found["difference"] <= found["tolerance"]
    assert found["store_bytes"] > LEAKED
    assert f"the job's store moved {found['store_bytes']:,} bytes" in outcome.err


def test_a_finished_run_is_not_passed_off_as_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["experiment=tiny", f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run"]
    train.run(load_config([*settings, "cluster.backend=loopback"]), train.Rank())
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

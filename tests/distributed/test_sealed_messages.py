"""Messages between real ranks, attacked on their way: each attack ends in one line, and none changes a model."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from llcg_dist.comm.frame import SEAL_BYTES
from llcg_dist.comm.job_key import write_key
from tests.helpers.capture import Capture, captured
from tests.helpers.jobs import Outcome
from tests.helpers.run_files import model_bytes, rows, rows_without_times, wire
from tests.helpers.training import TINY, on_loopback, train_in_process, train_in_ranks

ATTACKS: Mapping[str, str] = {
    "flip": "a message from rank 1 (part {0}) is refused: it was not sealed with this job's key, or was changed or cut",
    "truncate": "a message from rank 1 (part {0}) is refused: it was not sealed with this job's key, or was changed or",
    "replay": "a message from rank 2 (part {1}) is refused: it was sent before (message ",
    "swap": "a message from rank 2 (part {1}) is refused: it was sealed for another link (from rank 1 to rank 0",
    "flip_features": "a message from rank 1 (part {0}) is refused: it was not sealed with this job's key, or was",
}
RESUMED = (2, 3, 4)


def theta(run_dir: Path) -> list[bytes]:
    """Pieces of a model's weights, as they are sent."""
    weights = max(torch.load(run_dir / "best.pt", weights_only=True).values(), key=lambda tensor: tensor.numel())
    whole = weights.numpy().tobytes()
    return [whole[start : start + 48] for start in range(0, len(whole) - 48, 256)]


class Jobs:
    """Jobs with a key, one after the other in the same processes, while somebody listens."""

    def __init__(self, root: Path) -> None:
        self.root = root
        write_key(root / "job.key")
        parts, key = f"partition.root={root}/parts", f"cluster.key_file={root}/job.key"
        for name, seed in (("first", 1), ("second", 2)):
            train_in_process(parts, *TINY, "num_rounds=1", f"seed={seed}", f"run_dir={root}/init_{name}")
        sealed = [[key, f"num_rounds={rounds}", f"run_dir={root}/resumed"] for rounds in RESUMED]
        sealed += [[key, "algorithm=ggs", "cluster.audit=true", f"run_dir={root}/ggs"]]
        sealed += [[key, f"init_from={root}/init_first", "num_rounds=1", f"run_dir={root}/captured"]]
        sealed[0] += ["cluster.audit=true"]
        in_the_clear = ["cluster.sealed=false", f"init_from={root}/init_second", f"run_dir={root}/in_the_clear"]
        attacked = [[key, f"run_dir={root}/{name}"] for name in ATTACKS]
        attacked[-1] += ["algorithm=ggs"]
        jobs = [in_the_clear, *sealed, *attacked]  # ranks of one store: without a key none would read what has a seal
        leaks = dict(enumerate(ATTACKS, start=len(sealed) + 1))
        self.outcome: Outcome
        self.capture: Capture
        pieces = [*theta(root / "init_first"), *theta(root / "init_second"), b"LLCG"]
        with captured("lo", pieces) as self.capture:
            self.outcome, self.codes = train_in_ranks(root, [[parts, *TINY, *job] for job in jobs], leaks)

    def sealed_with(self, run: str) -> dict[str, list[list[str]]]:
        """By all ranks, until this run was over."""
        read = [json.loads((self.root / f"{run}.sealed.{rank}.json").read_text()) for rank in range(3)]
        return {name: [pair for of_rank in read for pair in of_rank[name]] for name in ("used", "repeated")}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return Jobs(tmp_path_factory.mktemp("sealed"))


def test_only_the_attacked_jobs_fail(jobs: Jobs) -> None:
    assert jobs.codes == [0] * (len(RESUMED) + 3) + [1] * len(ATTACKS), jobs.outcome.err


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_ends_in_one_line_that_names_rank_and_part(jobs: Jobs, attack: str) -> None:
    ranks = json.loads((jobs.root / attack / "logs" / "ranks.json").read_text())["rank_of_part"]
    line = ATTACKS[attack].format(ranks.index(1), ranks.index(2))
    assert any(line in text for text in jobs.outcome.err.splitlines()), jobs.outcome.err
    assert "Traceback" not in jobs.outcome.err
    assert not (jobs.root / attack / "model.pt").exists()
    assert [row["round"] for row in rows(jobs.root / attack)] in ([], [1])


def test_sealed_messages_change_no_bit_and_are_counted_apart(jobs: Jobs) -> None:
    for name, starts in (("resumed", [[f"num_rounds={rounds}"] for rounds in RESUMED]), ("ggs", [["algorithm=ggs"]])):
        for settings in starts:
            looped = on_loopback(jobs.root, f"loopback_{name}", *TINY, *settings)
        assert model_bytes(looped) == model_bytes(jobs.root / name)
        for own, other in zip(rows(jobs.root / name), rows_without_times(looped), strict=True):
            assert {key: own[key] for key in other if key != "sealing_bytes"} == {
                key: value for key, value in other.items() if key != "sealing_bytes"
            }
    for row in rows(jobs.root / "resumed"):
        assert row["sealing_bytes"] == 2 * 2 * SEAL_BYTES
        assert row["control_bytes"] + row["sealing_bytes"] <= 2 * 4096


def test_the_audit_explains_every_byte_of_sealed_messages(jobs: Jobs) -> None:
    found = wire(jobs.root / "ggs")
    assert found["audit"]["passed"]
    assert found["bytes_by_kind"]["sealing"] > 0
    assert set(found["bytes_in_detail"]["sealing"]) == {"up", "down", "between"}
    unexplained = found["audit"]["tolerance"] - found["audit"]["difference"]
    assert 0 <= unexplained <= 8 * found["audit"]["connections"]


def test_no_key_is_used_with_the_same_nonce_twice_by_a_run_that_is_resumed_twice(jobs: Jobs) -> None:
    found = jobs.sealed_with("resumed")
    assert found["repeated"] == []
    used = [tuple(pair) for pair in found["used"]]
    assert len(used) == len(set(used)) > 50
    assert len({key for key, _ in used}) == 4 * len(RESUMED)  # two links, two directions


def test_a_model_is_seen_on_its_way_without_sealing_and_not_with_it(jobs: Jobs) -> None:
    in_the_clear, sealed = theta(jobs.root / "init_second"), theta(jobs.root / "init_first")
    found = jobs.capture.found
    assert len(found.intersection(in_the_clear)) > 0.5 * len(in_the_clear)
    assert found.isdisjoint(sealed)
    assert b"LLCG" in found

"""Losses on loopback, as a script says: what a run loses, how the server stands in, and that a replay has its bits."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import PeerLostError, UserError
from llcg_dist.job.script import read_script
from tests.helpers.run_files import model_bytes, rows, rows_without_times
from tests.helpers.stopping import stopped
from tests.helpers.training import on_loopback

ROUNDS = 8
JOB = ["experiment=tiny", "cluster.num_machines=3", f"num_rounds={ROUNDS}", "algorithm.K=4", "cluster.on_loss=go_on"]
COUNTS = ["model=own", "model.target=torch_geometric.nn.GIN", "model.options.hidden_channels=8"]
COUNTS += ["model.options.num_layers=2", "model.options.norm=batch_norm", "model.options.norm_kwargs={momentum: null}"]
COUNTS.append("algorithm.batchnorm_stats=average")
OWN_STATE = ["algorithm=own", "algorithm.target=tests.helpers.stateful_method.BothMomenta"]


def script(folder: Path, losses: Mapping[int, Mapping[str, object]], rounds: int = ROUNDS) -> str:
    """A metrics.jsonl whose rounds have these columns; the setting that names it."""
    path = folder / "losses.jsonl"
    lines = [json.dumps({"round": round_, **losses.get(round_, {})}) for round_ in range(1, rounds + 1)]
    path.write_text("\n".join(lines) + "\n")
    return f"cluster.script={path}"


def test_a_run_that_lost_machines_is_replayed_to_the_bit(tmp_path: Path) -> None:
    """Part 1 is gone from round 3 to 5, part 0 from round 4 on."""
    absent = {3: [1], 4: [0, 1], 5: [0, 1], 6: [0], 7: [0], 8: [0]}
    losses = {round_: {"absent": parts} for round_, parts in absent.items()}
    losses[6]["returned"] = [1]
    undisturbed = on_loopback(tmp_path, "undisturbed", *JOB)
    for dtype in ("float32", "int8"):
        job = [*JOB, f"algorithm.exchange_dtype={dtype}"]
        first = on_loopback(tmp_path, f"first_{dtype}", *job, script(tmp_path, losses))
        again = on_loopback(tmp_path, f"again_{dtype}", *job, f"cluster.script={first}/metrics.jsonl")
        assert model_bytes(again) == model_bytes(first) != model_bytes(undisturbed)
        assert rows_without_times(again) == rows_without_times(first)
        recorded = rows(first)
        assert [row.get("absent", []) for row in recorded] == [[], [], *absent.values()]
        assert [row.get("returned", []) for row in recorded] == [[], [], [], [], [], [1], [], []]
        assert [row.get("stood_in", []) for row in recorded] == [[], [], [], [1], [0, 1], [0], [0], [0]]
        assert [value is None for value in recorded[3]["seconds_local_by_part"]] == [True, True, False]


def test_without_a_stand_in_the_others_are_averaged_alone(tmp_path: Path) -> None:
    lost = script(tmp_path, {round_: {"absent": [2]} for round_ in range(1, ROUNDS + 1)})
    alone = on_loopback(tmp_path, "alone", *JOB, lost, "cluster.stand_in=false")
    with_server = on_loopback(tmp_path, "with_server", *JOB, lost)
    assert not any("stood_in" in row for row in rows(alone))
    assert model_bytes(alone) != model_bytes(with_server)


@pytest.mark.parametrize("method", [[], OWN_STATE, COUNTS])
def test_a_run_that_lost_a_machine_resumes_with_the_same_bits(tmp_path: Path, method: list[str]) -> None:
    """It is stopped while part 1 is gone, and goes on: the stand-in remembers nothing between rounds."""
    losses = {round_: {"absent": [1]} for round_ in range(3, ROUNDS + 1)}
    job, lost = [*JOB, *method], script(tmp_path, losses)
    whole = on_loopback(tmp_path, "whole", *job, lost)
    stopped(tmp_path, "halved", 5, *job, lost)
    halved = on_loopback(tmp_path, "halved", *job, lost)
    assert model_bytes(halved) == model_bytes(whole)
    row = rows(halved)[5]
    assert [loss["part"] for loss in row["checkpoint_lost"]] == [1]
    assert row["absent"] == row["stood_in"] == [1]
    again = on_loopback(tmp_path, "again", *job, f"cluster.script={halved}/metrics.jsonl")
    assert model_bytes(again) == model_bytes(whole)


@pytest.mark.parametrize("method", [[], OWN_STATE])
def test_a_machine_that_is_back_saves_what_it_began_with(tmp_path: Path, method: list[str]) -> None:
    """A run that is stopped in the round of a return, and goes on, has the bits of one that was not."""
    job, lost = [*JOB, *method], script(tmp_path, {3: {"absent": [0]}, 4: {"returned": [0]}})
    whole = on_loopback(tmp_path, "whole", *job, lost)
    stopped(tmp_path, "halved", 4, *job, lost)
    halved = on_loopback(tmp_path, "halved", *job, lost)
    assert model_bytes(halved) == model_bytes(whole)


LATE: dict[int, dict[str, object]] = {
    2: {"late": {"1": 2}},
    3: {"late": {"0": 3, "1": 2}},
    4: {"late": {"1": 2}, "answered_late": {"0": 3}},
    5: {"answered_late": {"1": 2}, "late": {"1": 5}},
    6: {"late": {"1": 5}},
    7: {"answered_late": {"1": 5}},
    8: {"late": {"2": 8}},
}
"""Part 1 misses the ends of rounds 2 to 4, answers, is late again; part 0 misses that of round 3, part 2 the last."""


@pytest.mark.parametrize("late", ["drop", "damp"])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_run_with_late_machines_is_replayed_to_the_bit(tmp_path: Path, late: str, dtype: str) -> None:
    job = [*JOB, f"algorithm.exchange_dtype={dtype}", f"cluster.late={late}", "cluster.deadline=2"]
    undisturbed = on_loopback(tmp_path, "undisturbed", *job)
    first = on_loopback(tmp_path, "first", *job, script(tmp_path, LATE))
    again = on_loopback(tmp_path, "again", *job, f"cluster.script={first}/metrics.jsonl")
    assert model_bytes(again) == model_bytes(first) != model_bytes(undisturbed)
    assert rows_without_times(again) == rows_without_times(first)
    recorded = rows(first)
    for column in ("late", "answered_late"):
        assert [row.get(column, {}) for row in recorded] == [LATE.get(r, {}).get(column, {}) for r in range(1, 9)]
    assert [row.get("stood_in", []) for row in recorded] == [[], [], [1], [1], [], [1], [], []]
    assert [value is None for value in recorded[2]["seconds_local_by_part"]] == [True, True, False]
    assert not any("absent" in row for row in recorded)


def test_late_updates_are_taken_where_they_are_not_dropped(tmp_path: Path) -> None:
    columns: dict[int, dict[str, object]] = {2: {"late": {"1": 2}}, 3: {"answered_late": {"1": 2}}}
    job = [*JOB, "cluster.stand_in=false", script(tmp_path, columns)]
    dropped = on_loopback(tmp_path, "dropped", *job, "cluster.late=drop")
    damped = on_loopback(tmp_path, "damped", *job, "cluster.late=damp")
    assert model_bytes(dropped) != model_bytes(damped)


def test_a_machine_that_is_lost_while_it_is_late_has_no_update(tmp_path: Path) -> None:
    """With a stand-in or without: what it worked on never comes."""
    for stand_in in ("true", "false"):
        job = [*JOB, f"cluster.stand_in={stand_in}"]
        columns: dict[int, dict[str, object]] = {2: {"late": {"1": 2}}, 3: {"absent": [1]}, 4: {"returned": [1]}}
        first = on_loopback(tmp_path, f"first_{stand_in}", *job, script(tmp_path, columns))
        again = on_loopback(tmp_path, f"again_{stand_in}", *job, f"cluster.script={first}/metrics.jsonl")
        assert model_bytes(again) == model_bytes(first)
        assert not any("answered_late" in row for row in rows(first))
        assert rows(first)[2]["absent"] == [1]


def test_a_run_that_is_resumed_while_a_machine_is_late_begins_that_one_anew(tmp_path: Path) -> None:
    """And what its records say then, replayed, has its bits."""
    columns: dict[int, dict[str, object]] = {r: {"late": {"1": 2}, "answered_late": {}} for r in range(2, ROUNDS + 1)}
    lost = script(tmp_path, columns)
    stopped(tmp_path, "halved", 5, *JOB, lost)
    halved = on_loopback(tmp_path, "halved", *JOB, lost)
    assert [loss["part"] for loss in rows(halved)[5]["checkpoint_lost"]] == [1]
    again = on_loopback(tmp_path, "again", *JOB, f"cluster.script={halved}/metrics.jsonl")
    assert model_bytes(again) == model_bytes(halved)


def test_too_few_machines_end_the_run(tmp_path: Path) -> None:
    with pytest.raises(PeerLostError, match=r"^1 of 3 machines are left, cluster.min_machines=2: part 0: .*; part 2: "):
        on_loopback(tmp_path, "run", *JOB, script(tmp_path, {2: {"absent": [0, 2]}}), "cluster.min_machines=2")


def test_after_its_last_round_a_script_stays_as_it_was(tmp_path: Path) -> None:
    script(tmp_path, {2: {"absent": [1]}}, rounds=2)
    losses = read_script(tmp_path / "losses.jsonl", 3)
    assert [losses.absent(round_) for round_ in (1, 2, 3, 9)] == [[], [1], [1], [1]]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"round": 1, "absent": ["x"]}', "no JSON"])
def test_what_is_no_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "file").write_text(content)
    reason = "no rounds" if not content else ""
    with pytest.raises(UserError, match=rf"cluster\.script=.*file: not the metrics\.jsonl of a run \({reason}"):
        read_script(tmp_path / "file", 2)


def test_a_script_of_more_parts_is_refused(tmp_path: Path) -> None:
    script(tmp_path, {2: {"absent": [4]}})
    with pytest.raises(UserError, match="loses part 4, but cluster.num_machines=3"):
        read_script(tmp_path / "losses.jsonl", 3)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["algorithm=ggs", "cluster.on_loss=go_on"], "a round of ggs cannot end without one of its machines"),
        (["algorithm=full_sync", "cluster.on_loss=go_on"], "a round of full_sync cannot end without one"),
        (["algorithm=single", "cluster.on_loss=go_on"], "a round of single cannot end without one"),
        (["cluster.on_loss=go_on", "cluster.audit=true"], "cluster.audit=True: adds up the bytes of all ranks"),
        (["cluster.on_loss=go_on", "diagnostics.every=1"], "what is measured takes all machines"),
        (["cluster.on_loss=go_on", "cluster.backend=nccl"], "cluster.on_loss=go_on: must be fail"),
        (["cluster.script=rows"], "cluster.script=rows: takes cluster.backend=loopback"),
        (["cluster.deadline=2"], "cluster.deadline=2.0: takes cluster.on_loss=go_on"),
        (["algorithm=ggs", "cluster.deadline=2"], "cluster.deadline=2.0: takes cluster.on_loss=go_on"),
        (["cluster.on_loss=go_on", "cluster.deadline=0.5"], "cluster.deadline=0.5: must be at least 1"),
        (["cluster.on_loss=go_on", "cluster.deadline=inf"], "cluster.deadline=inf: must be a positive number"),
        (
            ["cluster.on_loss=go_on", "cluster.deadline=2", "algorithm.aggregate=median"],
            "cluster.late=damp: must be drop: algorithm.aggregate=median gives every update the same weight",
        ),
        (["cluster.min_machines=9", "cluster.num_machines=8"], "must be from 1 to cluster.num_machines=8"),
    ],
)
def test_what_cannot_go_on_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_algorithm(load_config(overrides))

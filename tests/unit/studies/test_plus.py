"""The grid of studies/plus.py and its tables, from runs made by hand."""

import json
from pathlib import Path

import pytest
from studies.plus_grid import (
    ALONE,
    ALONE_AS_LONG,
    FACTORS,
    GRAPHS,
    JUDGING_SEEDS,
    PLUS,
    SINGLE,
    TUNING_SEEDS,
    cells,
    contenders,
    fair_rivals,
    parse_base,
    variant_folder,
    variants,
)
from studies.plus_tables import judgement, promises, tuning_table
from studies.timed_runs import TimedRun

from llcg_dist.config.compose import load_config


def run(folder: Path, *scores: float, algorithm: str = PLUS, sent: int = 1000) -> TimedRun:
    """Rounds of a second each, with these validation scores; the test score is a point less."""
    folder.mkdir(parents=True)
    nothing = dict.fromkeys(("gradient_bytes", "control_bytes", "feature_bytes"), 0)
    rows = [
        {
            "round": r,
            "val_score": score,
            "cpu_local_by_part": [1.0, 0.5],
            "cpu_correct": 0.0,
            "bytes_up": sent,
            "bytes_down": 0,
        }
        | nothing
        for r, score in enumerate(scores, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    best, last = max(scores), scores[-1]
    summary = {"algorithm": algorithm, "best_val_score": best, "test_score_at_best_val": best - 0.01}
    (folder / "summary.json").write_text(
        json.dumps(summary | {"final_val_score": last, "final_test_score": last - 0.01})
    )
    return TimedRun(folder)


def test_seeds_that_judge_tune_nothing() -> None:
    assert not set(TUNING_SEEDS) & set(JUDGING_SEEDS)


def test_one_factor_at_a_time() -> None:
    base = parse_base(["parts=labels"])
    found = variants(base, ["parts", "ema"])
    assert list(found) == ["base", "parts=metis", "parts=clusters", "ema=0.5", "ema=0.8"]
    cut = ["partition=metis", "partition.balance=labels"]
    steps = ["algorithm.S=4", "train.lr_schedule=constant", "sampling.server_fanout=-1"]
    assert found["base"] == [f"algorithm={PLUS}", *cut, *steps]
    assert set(found["ema=0.5"]) - set(found["base"]) == {"evaluate.ema=0.5"}
    with pytest.raises(SystemExit, match="parts=banana"):
        parse_base(["parts=banana"])


def test_another_base_finds_the_runs_that_it_shares() -> None:
    plain, labels = parse_base([]), parse_base(["parts=labels"])
    assert variant_folder("parts=labels", plain) == variant_folder("base", labels)
    names = [variant_folder(name, plain) for name in variants(plain, list(FACTORS))]
    assert len(set(names)) == len(names)


@pytest.mark.full
def test_every_run_composes() -> None:
    named = {**variants(parse_base([]), list(FACTORS)), **contenders(), **fair_rivals(1.4, 1.2)}
    found = list(cells(["cora"], [8], named, range(100, 101)))
    assert len({cell.folder(Path("out")) for cell in found}) == len(named)
    for cell in found:
        config = load_config([*cell.settings(Path("data"), Path("out")), "cluster.backend=loopback"])
        assert (config.seed, config.cluster.num_machines, config.dataset.name) == (100, 8, "Cora")
    others = list(cells(GRAPHS, [16], {"base": named["base"]}, range(1)))
    assert {load_config(cell.settings(Path("data"), Path("out"))).cluster.num_machines for cell in others} == {16}


def test_what_holds_and_what_does_not(tmp_path: Path) -> None:
    scores = dict.fromkeys([*contenders(), *ALONE.values()], 0.80)
    scores |= {PLUS: 0.90, SINGLE: 0.902, ALONE[PLUS]: 0.92, ALONE_AS_LONG: 0.95, "ggs": 0.95}
    named = {
        name: {seed: run(tmp_path / name / str(seed), 0.5, score + seed / 500) for seed in (0, 1)}
        for name, score in scores.items()
    }
    lines = promises(named)
    assert {line for line in lines if line.endswith("**fails**")} == {
        "llcg_plus not below server_only by more than two errors (-2.00): **fails**",
        "above server_only at equal cluster time (-5.00): **fails**",
        "above ggs (-5.00): **fails**",
    }
    assert "fewer rounds to 97 % of single than before (0.00): holds" in lines  # it never came there before
    text = judgement({("cora", 8): named})
    assert "| cora | 8 | psgd_pa | 79.1 ± 0.1 | +10.0 ± 0.0 | 0.00 | never | never |" in text
    assert "- cora, P = 8: bytes of psgd_pa" in text


def test_the_server_alone_is_given_the_same_steps_and_time() -> None:
    found = fair_rivals(1.4, 1.2)
    steps, longer = (load_config(overrides) for overrides in found.values())
    assert (steps.algorithm.S, longer.num_rounds) == (1, 30)
    plus = load_config([f"algorithm={PLUS}"])
    assert longer.algorithm.S == plus.algorithm.S
    assert longer.train == plus.train
    assert longer.sampling == plus.sampling


def test_the_table_of_the_tuning(tmp_path: Path) -> None:
    named = {
        "base": {0: run(tmp_path / "base", 0.5, 0.8, 0.7)},
        "ema=0.5": {0: run(tmp_path / "ema", 0.81, 0.8)},
        "single": {0: run(tmp_path / "single", 0.2, 0.8, algorithm="single")},
    }
    text = tuning_table({("cora", 8): named})
    assert "| cora | 8 | base | 79.0 (one seed) |  | 10.00 | 2.0 | 2.00 |" in text
    assert "| cora | 8 | ema=0.5 | 80.0 (one seed) | +1.0 (one seed) | 1.00 | 1.0 | 1.00 |" in text
    assert "| cora | 8 | single | 79.0 (one seed) | +0.0 (one seed) | 0.00 | 2.0 | 3.00 |" in text

"""Settings compared: fingerprints, what all ranks must share, what a resumed run must keep."""

import dataclasses
import json
from typing import Any

import pytest

from llcg_dist.config.compare import fingerprint, flat_dict, flat_items, resume_conflicts, shared_settings
from llcg_dist.config.compose import load_config
from tests.helpers.settings import DEFAULT, changed_default, set_value

LOCATIONS = {
    "cluster.interface", "cluster.key_file", "cluster.start", "run_dir", "partition.root", "checkpoint.dir",
    "checkpoint.mirror", "evaluate.scratch", "init_from", "dataset.memory",
}  # fmt: skip


def another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x"


@pytest.mark.parametrize("key", flat_items(DEFAULT))
def test_the_fingerprint_is_of_what_is_computed_not_of_where(key: str) -> None:
    other = changed_default(seed=DEFAULT.seed)
    assert fingerprint(other) == fingerprint(DEFAULT)
    set_value(other, key, another(flat_items(DEFAULT)[key]))
    assert (fingerprint(other) == fingerprint(DEFAULT)) == (key in LOCATIONS)


def test_flat_items_go_into_json() -> None:
    items = flat_items(DEFAULT)
    assert items["algorithm.K"] == 8.0
    assert items["num_rounds"] == 20
    assert json.loads(json.dumps(items)) == items


def test_all_ranks_must_share_everything_but_locations() -> None:
    shared = shared_settings(load_config(["sampling.fanout=[10,5]", "run_dir=here", "cluster.interface=eth0"]))
    assert shared.keys() == flat_items(DEFAULT).keys() - LOCATIONS
    assert shared["sampling.fanout"] == [10, 5]


def test_flat_dict_joins_keys_with_dots() -> None:
    assert flat_dict({"a": 1, "b": {"c": {"d": None}, "e": [1, {"f": 2}]}}) == {
        "a": 1,
        "b.c.d": None,
        "b.e": [1, {"f": 2}],
    }


@pytest.mark.parametrize(
    ("overrides", "conflicts"),
    [
        ([], []),
        (["num_rounds=21"], []),
        (["num_rounds=19"], ["num_rounds (20 there, 19 here)"]),
        (["cluster.backend=loopback", "logger=none", "diagnostics.every=3", "checkpoint.every=5"], []),
        (["run_dir=there", "partition.root=elsewhere", "cluster.interface=eth7", "init_from=there"], []),
        (["cluster.server_threads=2"], []),
        (["train.precision=bfloat16"], ["train.precision (float32 there, bfloat16 here)"]),
        (["early_stop.patience=3"], ["early_stop.patience (None there, 3 here)"]),
        (["seed=1", "algorithm.K=4"], ["algorithm.K (8.0 there, 4.0 here)", "seed (0 there, 1 here)"]),
    ],
)
def test_what_a_resumed_run_must_keep(overrides: list[str], conflicts: list[str]) -> None:
    assert resume_conflicts(dataclasses.asdict(DEFAULT), load_config(overrides)) == conflicts


def test_a_key_that_one_side_lacks_is_a_conflict_on_resume() -> None:
    old = dataclasses.asdict(DEFAULT) | {"momentum": 0.9}
    del old["seed"]
    assert resume_conflicts(old, DEFAULT) == ["momentum (0.9 there, None here)", "seed (None there, 0 here)"]


@pytest.mark.parametrize(("before", "now", "allowed"), [(3, 4, True), (3, 2, False), (3, "null", True), (0, 3, False)])
def test_patience_may_grow_on_resume(before: int, now: int | str, allowed: bool) -> None:
    old = dataclasses.asdict(load_config([f"early_stop.patience={before}"]))
    assert (resume_conflicts(old, load_config([f"early_stop.patience={now}"])) == []) == allowed

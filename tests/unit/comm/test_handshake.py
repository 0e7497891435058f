"""Who trains which part, and ranks that do not belong together."""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist import __version__
from llcg_dist.comm.handshake import agree, match_parts, newest_common_round, offer
from llcg_dist.dataset_config import DatasetConfig
from llcg_dist.errors import UserError
from llcg_dist.schema import Config, PartitionConfig


@st.composite
def disks(draw: st.DrawFn) -> list[set[int]]:
    parts = draw(st.integers(1, 5))
    return draw(st.lists(st.sets(st.integers(0, parts - 1)), min_size=parts, max_size=parts))


@given(disks())
def test_any_complete_matching_is_found_and_identity_first(held: list[set[int]]) -> None:
    parts = range(len(held))
    complete = [ranks for ranks in permutations(parts) if all(part in held[ranks[part]] for part in parts)]
    if not complete:
        with pytest.raises(UserError, match="no rank is left for part"):
            match_parts(held, len(held))
        return
    found = match_parts(held, len(held))
    assert tuple(rank - 1 for rank in found) in complete
    if all(part in held[part] for part in parts):
        assert found == [part + 1 for part in parts]


def test_one_shared_disk_gives_rank_p_plus_one_part_p() -> None:
    assert match_parts([{0, 1, 2}] * 3, 3) == [1, 2, 3]


def test_hosts_in_another_order() -> None:
    assert match_parts([{2}, {0}, {1}], 3) == [2, 3, 1]


def test_a_choice_that_looks_good_may_have_to_be_undone() -> None:
    """Rank 1 could take part 0, but then nobody is left for part 1."""
    assert match_parts([{0, 1}, {0}], 2) == [2, 1]


@pytest.mark.parametrize(
    ("held", "missing"), [([{0}, {0}], 1), ([{1}, {1}], 0), ([{0, 1}, {0, 1}, {0, 1}], 2), ([set(), {1}], 0)]
)
def test_a_missing_part_is_named_with_what_each_rank_holds(held: list[set[int]], missing: int) -> None:
    with pytest.raises(UserError) as refused:
        match_parts(held, len(held))
    message = str(refused.value)
    assert f"no rank is left for part {missing} " in message
    for index, parts in enumerate(held):
        assert f"rank {index + 1} holds {sorted(parts) or 'none'}" in message
    assert "partition.root" in message
    assert "\n" not in message


def test_fewer_ranks_than_parts_leave_a_part_out() -> None:
    with pytest.raises(UserError, match="no rank is left for part 2"):
        match_parts([{0}, {1}], 3)


def config(**changes: Any) -> Config:
    fields: dict[str, Any] = {"dataset": DatasetConfig("synthetic")}
    made = Config(**(fields | changes))
    made.algorithm.name = "llcg"
    return made


def offers(*parts_by_rank: dict[int, str]) -> list[dict[str, Any]]:
    return [offer(config(), {}, {}), *(offer(config(), parts, {}) for parts in parts_by_rank)]


def test_an_offer_tells_who_one_is() -> None:
    made = offer(config(), {0: "a", 3: "a"}, {3: [1, 2]})
    assert made["llcg_dist"] == __version__
    assert made["parts"] == {"0": "a", "3": "a"}
    assert made["checkpoints"] == {"3": [1, 2]}
    assert json.loads(json.dumps(made)) == made  # as it crosses
    assert made["settings"] != offer(config(seed=1), {}, {})["settings"]


def test_hosts_may_keep_their_files_elsewhere() -> None:
    elsewhere = config(run_dir="there", partition=PartitionConfig(root="there"))
    assert offer(elsewhere, {}, {})["settings"] == offer(config(), {}, {})["settings"]


def test_ranks_that_agree() -> None:
    assert agree(offers({0: "a"}, {1: "a"}), "a", 2) == [1, 2]
    assert agree(offers({1: "a"}, {0: "a"}), "a", 2) == [2, 1]


def test_parts_of_another_store_do_not_count() -> None:
    """Part 0 at rank 1 comes from other data; rank 2 holds both of the right store's, of which it can take one."""
    with pytest.raises(UserError, match="no rank is left for part"):
        agree(offers({0: "b"}, {0: "a", 1: "a"}), "a", 2)
    assert agree(offers({0: "b", 1: "a"}, {0: "a", 1: "a"}), "a", 2) == [2, 1]
    assert agree(offers({7: "a", 0: "a"}), "a", 1) == [1]


@pytest.mark.parametrize("key", ["llcg_dist", "torch", "python", "settings"])
def test_a_difference_names_the_rank_and_both_values(key: str) -> None:
    made = offers({0: "a"}, {1: "a"})
    made[2][key] = "other-value"
    with pytest.raises(UserError) as refused:
        agree(made, "a", 2)
    message = str(refused.value)
    assert f"rank 2 has {key} other-value" in message
    assert f"rank 0 has {made[0][key]}" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("server", "of_parts", "expected"),
    [
        ([1, 2, 3], [[1, 2, 3], [1, 2, 3]], 3),
        ([1, 2, 3], [[1, 2], [2, 3]], 2),
        ([3], [[1, 2], [1, 2]], 0),
        ([], [[1], [1]], 0),
        ([1, 2], [[1, 2], []], 0),
    ],
)
def test_a_run_goes_on_from_the_newest_round_that_everyone_has(
    server: list[int], of_parts: list[list[int]], expected: int
) -> None:
    """Part 0 is at rank 2 and part 1 at rank 1; what rank 1 has of part 0 does not count."""
    made = [
        offer(config(), {}, {}),
        offer(config(), {0: "a", 1: "a"}, {0: [1, 2, 3, 4], 1: of_parts[1]}),
        offer(config(), {0: "a"}, {0: of_parts[0]}),
    ]
    assert newest_common_round(server, made, [2, 1]) == expected


def test_a_rank_without_checkpoints_of_its_part_means_a_new_start() -> None:
    assert newest_common_round([1], offers({0: "a"}), [1]) == 0

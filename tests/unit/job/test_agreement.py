"""Who trains which part, and ranks that do not belong together."""

import json
import re
from dataclasses import asdict
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist import __version__
from llcg_dist.config.cluster import ClusterConfig
from llcg_dist.config.compose import load_config
from llcg_dist.config.dataset import DatasetConfig
from llcg_dist.config.partition import PartitionConfig
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.job.agreement import (
    Identity,
    Offered,
    PartReport,
    assign_ranks,
    checksum,
    described_shards,
    match_parts,
    require_parts,
    require_same,
    require_world,
)
from llcg_dist.job.process import Rank
from llcg_dist.job.run import run


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


def identities(count: int) -> list[Identity]:
    return [Identity(**json.loads(json.dumps(asdict(Identity.of(config()))))) for _ in range(count)]  # as it crosses


def test_ranks_that_are_alike() -> None:
    assert Identity.of(config()).versions["llcg_dist"] == __version__
    require_same(identities(3))


@pytest.mark.parametrize("key", ["llcg_dist", "torch", "python"])
def test_another_version_names_the_rank_and_both_values(key: str) -> None:
    made = identities(3)
    ours = made[0].versions[key]
    made[2].versions[key] = "0.0"
    with pytest.raises(UserError, match=rf"^rank 2 has {key} 0\.0 \(rank 0: {re.escape(ours)}\): start all"):
        require_same(made)


def test_other_settings_name_the_keys_and_both_values() -> None:
    made = identities(3)
    made[1].settings.update({"algorithm.K": 5.0, "seed": 1})
    with pytest.raises(UserError) as refused:
        require_same(made)
    assert str(refused.value) == "rank 1 has algorithm.K 5.0 (rank 0: 8.0), seed 1 (rank 0: 0): start all ranks alike"


def test_many_differences_stay_one_line() -> None:
    made = identities(2)
    made[1].settings.update(dict.fromkeys(made[1].settings, "other"))
    with pytest.raises(UserError, match=r"and \d+ more: start") as refused:
        require_same(made)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_setting_that_only_one_side_knows_is_a_difference() -> None:
    made = identities(2)
    del made[1].settings["seed"]
    with pytest.raises(UserError, match=r"rank 1 has seed None \(rank 0: 0\)"):
        require_same(made)


def test_hosts_may_keep_their_files_elsewhere_and_have_other_interfaces() -> None:
    elsewhere = config(
        run_dir="there", partition=PartitionConfig(root="there"), cluster=ClusterConfig(interface="eth7")
    )
    require_same([Identity.of(elsewhere), Identity.of(config())])


def test_the_number_of_processes() -> None:
    require_world(3, 3)
    with pytest.raises(UserError, match=r"cluster\.num_machines.* a server and 4 machines, but 3 process"):
        require_world(3, 5)


def offers(*of_machines: tuple[set[int], set[int]]) -> list[Offered]:
    return [Offered(sorted(parts), sorted(started)) for parts, started in of_machines]


def test_a_part_stays_where_its_checkpoints_are() -> None:
    """Both disks have both parts; torchrun has turned the hosts round since the checkpoints were written."""
    both = {0, 1}
    assert assign_ranks(offers((both, {1}), (both, {0})), 2) == [2, 1]
    assert assign_ranks(offers((both, set()), (both, set())), 2) == [1, 2]
    assert assign_ranks(offers((both, {1}), (both, {1})), 2) == [1, 2]  # of no use to part 0
    assert assign_ranks(offers((both, both), (both, both)), 2) == [1, 2]
    assert assign_ranks(offers((both, set()), (both, {0})), 2) == [2, 1]  # part 1 has lost its own: part 0 must not


def test_checkpoints_of_a_part_that_the_disk_does_not_hold_count_for_nothing() -> None:
    assert assign_ranks(offers(({0}, {1}), ({1}, {0})), 2) == [1, 2]


def test_parts_of_a_store_with_more_parts_do_not_count() -> None:
    assert assign_ranks(offers(({7, 0}, set())), 1) == [1]
    with pytest.raises(UserError, match="no rank is left for part 0"):
        assign_ranks(offers(({7}, set())), 1)


SHARDS = [{"store_id": "a"}, {"store_id": "b"}]


def report(part: int, *rounds: int) -> PartReport:
    return PartReport(checksum(SHARDS[part]), list(rounds))


def test_every_machine_has_read_the_part_that_the_server_means() -> None:
    require_parts([report(0), report(1)], [2, 1], SHARDS)


def test_a_part_of_another_store_is_named_with_both_checksums() -> None:
    with pytest.raises(UserError) as refused:
        require_parts([report(0), report(0)], [1, 2], SHARDS)
    message = str(refused.value)
    assert message.startswith("rank 2: its part 1 has checksum")
    assert report(0).checksum in message
    assert report(1).checksum in message


@pytest.mark.parametrize("manifest", [{}, {"shards": None}, {"shards": {}}])
def test_a_manifest_without_the_part_is_refused(manifest: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="manifest.json: does not describe"):
        described_shards(manifest, ["part0"])


def test_a_rank_that_nobody_started_with_others_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(UserError, match=r"a server and 2 machines, but 1 process\(es\) were started; use `llcg train`"):
        run(load_config(["experiment=tiny"]), Rank())

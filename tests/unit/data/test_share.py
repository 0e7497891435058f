"""A host's share of a store."""

from pathlib import Path

import pytest

from llcg_dist.data.share import write_share
from llcg_dist.errors import UserError


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = tmp_path / "a" / "graph-metis-12-0"
    for folder in ("global", "part0", "part1/halo", "part10", "part11"):
        (made / folder).mkdir(parents=True)
        (made / folder / "graph.json").write_text(folder)
    (made / "manifest.json").write_text("all")
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_machine_gets_its_parts_and_nothing_else(store: Path, tmp_path: Path) -> None:
    share = write_share(store, 12, ["1", "11"], tmp_path / "b")
    assert share == tmp_path / "b" / store.name
    assert names(share) == ["part1", "part11"]
    assert (share / "part1" / "halo" / "graph.json").read_text() == "part1/halo"
    assert names(tmp_path / "b") == [store.name]


def test_the_server_gets_the_full_graph(store: Path, tmp_path: Path) -> None:
    assert names(write_share(store, 12, ["server"], tmp_path / "b")) == ["global", "manifest.json"]
    assert names(write_share(store, 12, ["server", "0"], tmp_path / "c")) == ["global", "manifest.json", "part0"]


def test_what_all_need_goes_to_all(store: Path, tmp_path: Path) -> None:
    (store / "topology").mkdir()
    assert names(write_share(store, 12, ["0"], tmp_path / "b")) == ["part0", "topology"]


@pytest.mark.parametrize("holder", ["12", "-1", "", "all", "0 ", "00", "٣"])
def test_a_part_that_is_not_there(store: Path, tmp_path: Path, holder: str) -> None:
    with pytest.raises(UserError, match=r"--share: .* is neither a part of 0\.\.11 nor server"):
        write_share(store, 12, ["0", holder], tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_share_is_not_overwritten(store: Path, tmp_path: Path) -> None:
    write_share(store, 12, ["0"], tmp_path / "b")
    with pytest.raises(UserError, match="is there already"):
        write_share(store, 12, ["1"], tmp_path / "b")

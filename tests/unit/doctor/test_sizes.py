"""How large a graph is, from headers, settings and manifests; nothing of it is read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.partition import ensure_store
from llcg_dist.doctor.sizes import GraphSize, size_of


def files_of(folder: Path, **paths: Path) -> Config:
    return load_config(["dataset=files", *(f"dataset.{name}={path}" for name, path in paths.items())])


@pytest.fixture
def arrays(tmp_path: Path) -> dict[str, Path]:
    """50 nodes with 6 features, 200 edges, 7 classes."""
    rng = np.random.default_rng(0)
    content: dict[str, np.ndarray] = {
        "edges": rng.integers(50, size=(2, 200)),
        "features": rng.random((50, 6), dtype=np.float32),
        "labels": np.arange(50) % 7,
    }
    for name, array in content.items():
        np.save(tmp_path / f"{name}.npy", array)
    return {name: tmp_path / f"{name}.npy" for name in content}


def test_of_npy_files(tmp_path: Path, arrays: dict[str, Path]) -> None:
    size = size_of(files_of(tmp_path, **arrays))
    assert size is not None
    assert (size.nodes, size.edges, size.features, size.classes) == (50, 200, 6, 7)
    assert (size.value_bytes, size.stored_bytes, size.train_share) == (4, 4, 0.6)
    assert size.file_bytes == sum(path.stat().st_size for path in arrays.values())
    assert size.edge_bytes == arrays["edges"].stat().st_size
    assert not size.are_tables
    assert not size.is_written


def test_features_of_other_types_are_converted(tmp_path: Path, arrays: dict[str, Path]) -> None:
    np.save(arrays["features"], np.zeros((50, 6)))
    size = size_of(files_of(tmp_path, **arrays))
    assert size is not None
    assert size.is_written
    assert size.value_bytes == 4
    config = files_of(tmp_path, **arrays)
    config.partition.features_dtype = "float16"  # type: ignore[assignment]
    halved = size_of(config)
    assert halved is not None
    assert halved.stored_bytes == 2


def test_of_parquet_files(tmp_path: Path, arrays: dict[str, Path]) -> None:
    nodes = [f"n{i}" for i in range(50)]
    pd.DataFrame({"src": nodes, "dst": nodes}).to_parquet(tmp_path / "edges.parquet", index=False)
    pd.DataFrame({"node": nodes, "a": 1.0, "b": 2.0}).to_parquet(tmp_path / "features.parquet", index=False)
    tables = {name: tmp_path / f"{name}.parquet" for name in ("edges", "features")}
    size = size_of(files_of(tmp_path, **(arrays | tables)))
    assert size is not None
    assert (size.nodes, size.edges, size.features) == (50, 50, 2)
    assert size.are_tables
    assert size.edge_bytes == 0


def test_of_text_about_as_many_lines(tmp_path: Path, arrays: dict[str, Path]) -> None:
    lines = ["src,dst", *(f"{i % 50:02d},{(i + 1) % 50:02d}" for i in range(20_000))]
    (tmp_path / "edges.csv").write_text("\n".join(lines) + "\n")
    size = size_of(files_of(tmp_path, **(arrays | {"edges": tmp_path / "edges.csv"})))
    assert size is not None
    assert size.edges == pytest.approx(20_000, rel=0.01)


@pytest.mark.parametrize("content", [b"", b"no array", b"one line\n"])
def test_a_file_that_cannot_be_told_is_left_to_the_loader(
    tmp_path: Path, arrays: dict[str, Path], content: bytes
) -> None:
    arrays["edges"].write_bytes(content)
    assert size_of(files_of(tmp_path, **arrays)) is None
    arrays["edges"].unlink()
    assert size_of(files_of(tmp_path, **arrays)) is None


def test_of_a_generated_graph() -> None:
    config = load_config(["dataset.nodes=1000", "dataset.degree=7", "dataset.features=3", "dataset.classes=5"])
    assert size_of(config) == GraphSize(1_000, 3_500, 3, 5, 0.5, is_written=True, is_drawn=True)
    assert size_of(load_config(["dataset.subset=10"])) is None
    assert size_of(load_config(["dataset=ogbn-arxiv"])) is None


def test_of_a_store(tmp_path: Path) -> None:
    config = load_config(["experiment=tiny", "partition=random", f"partition.root={tmp_path}"])
    _, manifest = ensure_store(config)
    size = size_of(config, manifest)
    assert size is not None
    assert (size.nodes, size.edges) == (manifest["num_nodes"], manifest["num_edges"])
    whole = sum(entry["bytes"] for entry in manifest["shards"]["global"]["arrays"].values())
    assert size.whole_bytes == pytest.approx(whole, rel=0.05)
    parts = sum(part["bytes"] for part in manifest["parts"])
    kept = 1 - manifest["cut_edges"] / manifest["num_edges"]
    assert manifest["num_parts"] * size.part_bytes(manifest["num_parts"], kept) == pytest.approx(parts, rel=0.05)

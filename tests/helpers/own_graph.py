"""A user's own graph of six nodes as files, for the tests of what loads and of what is refused."""

from pathlib import Path
from typing import Any

import pytest

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.errors import UserError

EDGES = "src,dst\na,b\nb,c\nc,d\nd,e\ne,f\nb,a\nc,c\n"
FEATURES = "node,x,y\na,1,0.5\nb,2,0.25\nc,3,-1\nd,4,1e3\ne,5,0\nf,6,7\n"
LABELS = "node,label\nf,tea\ne,tea\nd,\nc,milk\nb,milk\na,tea\n"
SPLIT = "node,split\na,train\nb,train\nc,val\nd,\ne,test\nf,test\n"
TEXTS = {"edges": EDGES, "features": FEATURES, "labels": LABELS, "split": SPLIT}


def write(folder: Path, **texts: str) -> None:
    for name, text in (TEXTS | texts).items():
        (folder / f"{name}.csv").write_text(text)


def settings(folder: Path, **other: Any) -> list[str]:
    given = {name: folder / f"{name}.csv" for name in TEXTS} | other
    overrides = [f"dataset.{name}={value}" for name, value in given.items()]
    return ["dataset=files", f"partition.root={folder / 'parts'}", "cluster.num_machines=1", *overrides]


def loaded(folder: Path, suffix: str = ".csv", **other: Any) -> Graph:
    files = {name: str(folder / f"{name}{suffix}") for name in TEXTS}
    return load_dataset(FilesConfig(**(files | other)))


def renamed(text: str, names: dict[str, str]) -> str:
    """The same file with other node ids."""
    return "\n".join(",".join(names.get(cell, cell) for cell in line.split(",")) for line in text.splitlines())


NUMBERS = {name: str(i) for i, name in enumerate("abcdef")}


def refused(folder: Path, suffix: str = ".csv", **other: Any) -> str:
    """The one line that says why the files in the folder are not read."""
    with pytest.raises(UserError) as error:
        loaded(folder, suffix, **other)
    assert "\n" not in str(error.value)
    return str(error.value)

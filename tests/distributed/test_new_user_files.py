"""What a new user tries first, on a real graph in files as people have them: asking, mistyping, reading the files.

The verbs of WordNet (tests/helpers/wordnet.py), whose files are as they come from a German spreadsheet. What follows,
from training to the report: test_new_user.py.
"""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.jobs import llcg_in_process
from tests.helpers.wordnet import COLUMNS, FILES, MASKS, Files

pytestmark = pytest.mark.full  # two minutes of jobs

SMALL = ["cluster.num_machines=3", "dataset.name=verben"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    written = Files(tmp_path_factory.mktemp("user"))
    written.write()
    return written


def says(files: Files, *arguments: str) -> str:
    """What a command prints that works."""
    outcome = llcg_in_process(*arguments, cwd=files.folder)
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return outcome.out


def refuses(files: Files, *arguments: str) -> str:
    """The one line of an error, of a command with exit code 2."""
    outcome = llcg_in_process(*arguments, cwd=files.folder)
    assert outcome.code == 2, outcome
    error = outcome.only_error()
    assert error.startswith("llcg: error: ")
    assert len(error) < 400
    return error


def test_asking_what_there_is(files: Files) -> None:
    commands = says(files, "--help")
    assert all(f"llcg {name}" in commands for name in ("partition", "train", "doctor", "report", "watch", "predict"))
    assert "algorithm.K = 7.0 " in says(files, "train", "algorithm.K=7", "--help")
    assert "edges: edges.csv\n" in says(files, "train", *FILES, "--cfg", "job")
    assert "| dataset/files " in says(files, "train", "dataset=files", "--info", "defaults")
    assert says(files, "predict", "--help").startswith("usage: llcg predict run_dir=RUN")


MISTYPED = {
    "a group": (["train", "algoritm=llcg"], "unknown key algoritm; did you mean algorithm?"),
    "a key": (["train", "algorithm.k=3"], "unknown key algorithm.k; did you mean algorithm.K?"),
    "a choice": (["train", "algorithm=lcg"], "did you mean llcg?"),
    "a command": (["trian"], "unknown command 'trian'"),
    "no dataset=files": (["train", "dataset.edges=edges.csv"], "add dataset=files to use it"),
    "no key": (["train", "edges.csv"], "edges.csv: cannot be read as a setting (key=value"),
    "a bare semicolon": (["train", "dataset=files", "dataset.delimiter=;"], """in quotes: 'dataset.delimiter=";"'"""),
    "no list": (["train", *FILES, "dataset.columns.ignore=gewicht"], "such as 'dataset.columns.ignore=[gewicht]'"),
    "a report of nothing": (["report", "nowhere"], "nowhere"),
    "a prediction of nothing": (["predict", "run_dir=nowhere"], "name the folder of a finished run"),
    "nothing to watch": (["watch", "nowhere"], "watch: nowhere is not a folder; name a run directory"),
}


@pytest.mark.parametrize("what", MISTYPED)
def test_mistakes_are_told_with_a_remedy(files: Files, what: str) -> None:
    command, message = MISTYPED[what]
    assert message in refuses(files, *command)


def without(*keys: str) -> list[str]:
    return [setting for setting in FILES if setting.partition("=")[0].removeprefix("dataset.") not in keys]


UNREAD = {
    "no delimiter": (without("delimiter"), "if semicolon separates its cells, give dataset.delimiter=semicolon"),
    "another delimiter": ([*FILES, "dataset.delimiter=tab"], "give dataset.delimiter=semicolon"),
    "no encoding": (without("encoding"), "labels.csv: line 2: is not utf-8 text; name its encoding, such as "),
    "an unknown encoding": ([*FILES, "dataset.encoding=ansi"], "use a name such as utf-8, latin-1 or cp1252"),
    "no weights here": (without("columns.ignore"), "to train without it: dataset.columns.ignore=[gewicht]"),
    "a wrong path": ([*FILES, "dataset.labels=label.csv"], "label.csv: no such file"),
    "an empty file": ([*FILES, "dataset.edges=leer.csv"], "its first line must name the columns, such as von,nach"),
    "decimal commas": ([*FILES, "dataset.features=komma.csv"], "with a point before its decimals"),
    "an empty cell": ([*FILES, "dataset.features=luecke.csv"], "line 7: column 'w2' is empty; it must be a finite"),
    "missing nodes": ([*FILES, "dataset.features=wenige.csv"], "is not a node of wenige.csv"),
    "no features": (without("features"), "dataset.features: must name a file with dataset=files"),
    "no labels": (without("labels"), "dataset.labels: must name a file with dataset=files"),
    "a mask as a split": ([*FILES, "dataset.split=train.npy"], "one mask alone: dataset.train_mask"),
} | {
    f"no name for {role}": (without(f"columns.{role}"), f"name the column with dataset.columns.{role}=NAME")
    for role in COLUMNS
}  # fmt: skip


@pytest.mark.parametrize("what", UNREAD)
def test_files_that_cannot_be_read_name_their_remedy(files: Files, what: str) -> None:
    features = pd.read_csv(files.folder / "features.csv", sep=";").astype(object)
    (files.folder / "leer.csv").touch()
    features.assign(w0="0,5").to_csv(files.folder / "komma.csv", sep=";", index=False)
    features.head(100).to_csv(files.folder / "wenige.csv", sep=";", index=False)
    features.iloc[5, 3] = None
    features.to_csv(files.folder / "luecke.csv", sep=";", index=False)
    settings, message = UNREAD[what]
    assert message in refuses(files, "partition", *settings)


def stored(files: Files, name: str) -> dict[str, np.ndarray]:
    """The whole graph as `llcg partition` wrote it."""
    (folder,) = (files.folder / "partitions").glob(f"files_{name}_*/global")
    return {path.stem: np.load(path) for path in folder.glob("*.npy")}


def test_the_files_become_parts(files: Files) -> None:
    """Verbs without an edge and without a label are there; the classes have their names."""
    printed = says(files, "partition", *FILES, *MASKS, *SMALL)
    assert f"cutting {len(files.ids):,} nodes and " in printed
    assert [line.split()[:2] for line in printed.splitlines() if line.startswith("part ")] == [
        ["part", str(part)] for part in range(3)
    ]
    graph = stored(files, "verben")
    assert graph["node_names"].tolist() == files.ids
    assert graph["class_names"].tolist() == sorted(set(files.classes))
    alone = np.array(files.ids)[np.diff(graph["indptr"]) == 0]
    assert sorted(alone) == files.isolated()
    assert len(alone) > 0
    assert ((graph["labels"] < 0) == ~files.labelled).all()


def test_arrays_in_place_of_tables(files: Files) -> None:
    """Labels as numbers with NaN for unknown ones, and one array of splits: the same graph."""
    says(files, "partition", *FILES, *MASKS, *SMALL)
    split = np.select([files.train, files.val, files.test], [0, 1, 2], -1)
    np.save(files.folder / "split.npy", split)
    arrays = ["dataset.labels=labels.npy", "dataset.split=split.npy", "dataset.name=felder"]
    says(files, "partition", *FILES, *SMALL, *arrays)
    tables, numbers = stored(files, "verben"), stored(files, "felder")
    for name in ("indptr", "indices", "features", "labels", "split"):
        np.testing.assert_array_equal(tables[name], numbers[name])


def test_the_doctor_looks_at_the_same_files(files: Files) -> None:
    told = says(files, "doctor", *FILES, *MASKS, *SMALL)
    assert "3 part(s) for 3 machine(s)" in told
    assert "traffic: bytes a round" in told
    found = llcg_in_process("doctor", *FILES, *SMALL, "dataset.delimiter=tab", cwd=files.folder)
    assert found.code == 2
    assert "features.csv: no column 'wort'" in found.out

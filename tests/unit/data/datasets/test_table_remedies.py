"""Tables that need a setting to be read: the message says which."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.files import FilesConfig
from tests.helpers.own_graph import LABELS, NUMBERS, TEXTS, loaded, refused, renamed, settings, write


def test_empty_files(tmp_path: Path) -> None:
    for content in ("", "\n\n"):
        write(tmp_path, edges=content)
        rule = "it is empty; its first line must name the columns, such as src,dst"
        assert refused(tmp_path) == f"{tmp_path}/edges.csv: not a readable CSV file: {rule}"


def test_a_latin_1_file_is_told_to_name_its_encoding(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "labels.csv").write_bytes(LABELS.replace("milk", "café").encode("latin-1"))
    advice = "is not utf-8 text; name its encoding, such as dataset.encoding=latin-1"
    assert refused(tmp_path) == f"{tmp_path}/labels.csv: line 5: {advice}"
    (tmp_path / "labels.csv").write_bytes(LABELS.encode("utf-16"))
    assert refused(tmp_path).endswith("such as dataset.encoding=utf-16")


@pytest.mark.parametrize(("word", "character"), [("semicolon", ";"), ("tab", "\t"), ("pipe", "|"), ("space", " ")])
def test_a_wrongly_delimited_file_is_told_the_delimiter(tmp_path: Path, word: str, character: str) -> None:
    write(tmp_path, features=TEXTS["features"].replace(",", character))
    message = refused(tmp_path)
    assert message.startswith(
        f"{tmp_path}/features.csv: no column 'node'; it has {f'node{character}x{character}y'!r}; "
    )
    assert message.endswith(f"give dataset.delimiter={word}")


def test_of_many_columns_the_first_are_named(tmp_path: Path) -> None:
    names = [f"x{i}" for i in range(1000)]
    write(tmp_path, features=f"id,{','.join(names)}\n0,{','.join('1' for _ in names)}\n")
    message = refused(tmp_path)
    assert "it has 'id', 'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6' and 993 more; name the column" in message
    write(tmp_path, features=f"id;{';'.join(names)}\n0,{';'.join('1' for _ in names)}\n")
    message = refused(tmp_path)
    assert len(message) < 300
    assert message.endswith("give dataset.delimiter=semicolon")


def test_a_missing_file_is_told_before_any_is_read(tmp_path: Path) -> None:
    write(tmp_path, features="not read")
    (tmp_path / "labels.csv").unlink()
    assert refused(tmp_path) == f"{tmp_path}/labels.csv: no such file"


def test_the_remedy_for_other_names_and_for_none(tmp_path: Path) -> None:
    write(tmp_path, edges=TEXTS["edges"].replace("src,dst", "from,to"))
    has = "no column 'src'; it has 'from', 'to'; name the column with dataset.columns.src=NAME"
    assert refused(tmp_path) == f"{tmp_path}/edges.csv: {has}"
    write(tmp_path, edges="0,1\n1,2\n")
    assert refused(tmp_path).endswith("no column 'src'; it has '0', '1'; its first line must name the columns")
    write(tmp_path, features=TEXTS["features"].replace(",0.5", ',"0,5"'))
    assert refused(tmp_path).endswith(
        "column 'y' is '0,5'; it must be a finite number, with a point before its decimals"
    )


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[ms, UTC]", "timedelta64[s]"])
def test_dates_and_times_are_no_features(tmp_path: Path, kind: str) -> None:
    write(tmp_path)
    path = tmp_path / "features.parquet"
    pd.read_csv(tmp_path / "features.csv").assign(when=pd.Series(range(6)).astype(kind)).to_parquet(path)
    rule = "column 'when' holds dates or times, not numbers; convert it, or leave it out with "
    assert refused(tmp_path, features=path) == f"{path}: {rule}dataset.columns.ignore=['when']"
    ignored = load_config([*settings(tmp_path), "dataset.columns.ignore=['when']"]).dataset
    assert isinstance(ignored, FilesConfig)
    assert loaded(tmp_path, features=str(path), columns=ignored.columns).num_features == 2


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_index_without_a_name_is_no_feature(tmp_path: Path, suffix: str) -> None:
    write(tmp_path)
    path, table = tmp_path / f"indexed{suffix}", pd.read_csv(tmp_path / "features.csv")
    table.insert(0, "Unnamed: 0", np.arange(6))
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    rule = "column 'Unnamed: 0' is an index that has no name (written with pandas? use index=False); or leave it out"
    assert refused(tmp_path, features=path) == f"{path}: {rule} with dataset.columns.ignore=['Unnamed: 0']"
    config = load_config([*settings(tmp_path), "dataset.columns.ignore=['Unnamed: 0']"]).dataset
    assert isinstance(config, FilesConfig)
    assert loaded(tmp_path, features=str(path), columns=config.columns).num_features == 2


def test_more_cells_than_the_header_in_every_row(tmp_path: Path) -> None:
    """With ids 0, 1, 2, … pandas drops the first column silently; empty cells at the ends of all lines are harmless."""
    texts = {name: renamed(text, NUMBERS) for name, text in TEXTS.items()}
    header, *rows = texts["features"].splitlines()
    write(tmp_path, **(texts | {"features": "\n".join([header, *(f"{row},9" for row in rows)])}))
    rule = "not a readable CSV file (line 2 has more cells than the header)"
    assert refused(tmp_path) == f"{tmp_path}/features.csv: {rule}"
    write(tmp_path, **(texts | {"features": "\n".join([header, *(f"{row}," for row in rows)])}))
    assert loaded(tmp_path).features[:, 0].tolist() == [1, 2, 3, 4, 5, 6]

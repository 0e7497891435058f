"""Tables that need a setting to be read: the message says which."""

from pathlib import Path

import pytest

from tests.helpers.own_graph import LABELS, TEXTS, refused, write


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

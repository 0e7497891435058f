"""classes.json: whole as JSON, and a line for every class."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.records.classes import SHOWN_CLASSES, class_table, write_class_results
from llcg_dist.training.class_scores import class_scores


def results(number: int) -> dict[str, Any]:
    labels = np.arange(number)
    scores = class_scores(labels, labels, [f"class {i}" for i in range(number)])
    return {"model": "best", "round": 3, "task": "multiclass", "val": None, "test": scores}


def test_a_line_for_each_class_and_each_row_of_the_matrix(tmp_path: Path) -> None:
    write_class_results(tmp_path / "classes.json", results(50))
    text = (tmp_path / "classes.json").read_text()
    assert json.loads(text) == results(50)
    assert len(text.splitlines()) == 50 + 50 + 14
    assert max(map(len, text.splitlines())) < 250
    assert list(tmp_path.iterdir()) == [tmp_path / "classes.json"]


def test_the_console_shows_percent_of_the_most_frequent_classes() -> None:
    scores = results(SHOWN_CLASSES + 5)["test"]
    scores["classes"][2]["support"] = 0
    scores["classes"][1]["support"] = 1234
    header, rows = class_table(scores)
    assert header == ["class", "precision %", "recall %", "F1 %", "support"]
    assert len(rows) == SHOWN_CLASSES
    assert rows[1] == ["class 1", "100.00", "100.00", "100.00", "1,234"]
    assert "class 2" not in [row[0] for row in rows]


def test_names_are_readable_in_any_language_and_read_back_whatever_they_are(tmp_path: Path) -> None:
    names = ["Gefühl", "感情", "\udcff", 'a"b']
    write_class_results(tmp_path / "classes.json", {"names": names})
    content = (tmp_path / "classes.json").read_bytes()
    assert "Gefühl".encode() in content
    assert json.loads(content) == {"names": names}

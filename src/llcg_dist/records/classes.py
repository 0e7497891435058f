"""classes.json: precision, recall, F1 and support of every class, and the confusion matrix. Imports no torch."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llcg_dist.data.atomic_files import write_bytes

CLASSES_FILE = "classes.json"
SHOWN_CLASSES = 30
"""Classes that a table on the console shows, the most frequent first."""


def write_class_results(path: Path, results: dict[str, Any]) -> None:
    """Writes class results atomically, with a line for each class and for each row of the confusion matrix, so that
    the file can be read by eye however many classes there are."""
    write_bytes(path, (_lines(results) + "\n").encode("utf-8", "backslashreplace"))  # which JSON reads back


def class_table(scores: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a text table with a row per class, in %; of many classes only the most frequent ones."""
    header = ["class", "precision %", "recall %", "F1 %", "support"]
    return header, [
        [row["class"], *(_percent(row[key]) for key in ("precision", "recall", "f1")), f"{row['support']:,}"]
        for row in most_frequent(scores["classes"], SHOWN_CLASSES)
    ]


def most_frequent(classes: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The classes with the most nodes, in their own order."""
    kept = sorted(range(len(classes)), key=lambda i: -classes[i]["support"])[:number]
    return [classes[i] for i in sorted(kept)]


def _lines(value: Any, depth: int = 0) -> str:
    """JSON with a line per entry down to lists of lists and of dictionaries, whose items take one line each."""
    inner = " " * (depth + 1)
    if isinstance(value, dict) and (depth == 0 or "nodes" in value and "classes" in value):
        entries = [f"{_json(key)}: {_lines(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + entry for entry in entries) + "\n" + " " * depth + "}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + _json(item) for item in value) + "\n" + " " * depth + "]"
    return _json(value)


def _json(value: Any) -> str:
    """Letters of any language as they are: the names of classes are read by people."""
    return json.dumps(value, ensure_ascii=False)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"

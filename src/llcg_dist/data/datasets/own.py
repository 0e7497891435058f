"""dataset=own: the graph that a class or function of the user's returns."""

import ast
import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llcg_dist.config.own_data import OwnConfig
from llcg_dist.config.targets import call
from llcg_dist.data.datasets.objects import to_graph, to_unlabelled_graph
from llcg_dist.data.graph import Graph


def load(config: OwnConfig) -> Graph:
    return to_graph(_call(config), config)


def load_to_predict(config: OwnConfig, trained: Graph) -> Graph:
    return to_unlabelled_graph(_call(config), config.described)


def _call(config: OwnConfig) -> Any:
    return call("dataset.target", str(config.target), **config.options)


def content_hashes(config: OwnConfig) -> dict[str, str]:
    """{setting: sha256} of the text of the user's class or function; empty where its module does not define it.

    What it reads is not looked at: that would mean calling it at every start.
    """
    text = _source_text(str(config.target))
    return {} if text is None else {"target": hashlib.sha256(text.encode()).hexdigest()}


def _source_text(target: str) -> str | None:
    """The text of a top-level class or function, found without importing its module."""
    module, _, name = target.rpartition(".")
    try:
        spec = find_spec(module)
        source = Path(spec.origin).read_text() if spec and spec.origin else ""
        definitions = ast.parse(source).body
    except Exception:  # a rank's host may not have the module, and packages around it may raise anything
        return None
    found = [node for node in definitions if getattr(node, "name", None) == name]
    return ast.get_source_segment(source, found[0]) if found else None

"""dataset=pyg: a PyG Data object, or a dictionary of tensors under PyG's names, that torch.save has written."""

import pickle
import re
from pathlib import Path
from typing import Any

from llcg_dist.config.own_data import PygConfig
from llcg_dist.data.datasets.objects import to_graph, to_unlabelled_graph
from llcg_dist.data.graph import Graph
from llcg_dist.data.store import file_sha256
from llcg_dist.errors import UserError, first_line

_CLASSES = {"data": ("Data", "DataEdgeAttr", "DataTensorAttr"), "storage": ("GlobalStorage", "AttrType")}
"""PyG's classes that a saved Data object consists of, by module of torch_geometric.data."""


def load(config: PygConfig) -> Graph:
    return to_graph(_read(config), config)


def load_to_predict(config: PygConfig, trained: Graph) -> Graph:
    return to_unlabelled_graph(_read(config), config.described)


def content_hashes(config: PygConfig) -> dict[str, str]:
    """{setting: sha256} of the file, where it exists."""
    return {"path": file_sha256(Path(config.path))} if config.path and Path(config.path).is_file() else {}


def _read(config: PygConfig) -> Any:
    """The object in the file. Only tensors, numbers and PyG's own classes are unpickled, so that it can run no code."""
    import torch

    try:
        with torch.serialization.safe_globals(_pyg_classes()):
            content = torch.load(str(config.path), map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"{config.described}: no such file") from None
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        what = f"holds {found[1]}, which may run code" if found else "cannot be read"
        advice = "save a Data object of tensors alone, or read it in a function of your own (dataset=own)"
        raise UserError(f"{config.described}: {what}; {advice}") from None
    except Exception as error:  # torch and zipfile raise almost anything on a damaged file
        raise UserError(f"{config.described}: not a file of torch.save ({first_line(error)})") from None
    return _of_processed(content)


def _of_processed(content: Any) -> Any:
    """The graph in data.pt of PyG's `processed` folders, which is (content, slices, class); other content as it is."""
    if isinstance(content, tuple) and len(content) in (2, 3) and content[1] is None:
        return content[0]
    return content


def _pyg_classes() -> list[Any]:
    import torch_geometric.data

    modules = {name: getattr(torch_geometric.data, name) for name in _CLASSES}
    return [getattr(modules[name], kind) for name, kinds in _CLASSES.items() for kind in kinds]

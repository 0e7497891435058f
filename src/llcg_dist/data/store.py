"""Graphs on disk: plain `.npy` files and a JSON file that describes them, opened memory-mapped and without pickle.

A partition store, written by data/partition.py and read one folder at a time:

    <partition.root>/<dataset>-<partitioner>-<P>-<seed>/
        manifest.json      schema version, partitioner, seed, cut edges, labels per part, versions, checksums
        global/            the full graph, for the server only
            graph.json     sizes, types and sha256 of the arrays beside it, task, metric, classes
            indptr.npy  indices.npy  features.npy  labels.npy  split.npy
            assignment.npy the part of every node
            order.npy      with partition.order=parts: the number that every node has in the data
            node_names.npy  class_names.npy  feature_names.npy    the user's own, where the data has them
        part0/ … part<P-1>/
            graph.json  indptr.npy … split.npy     the subgraph of one machine, and all that it opens
            nodes.npy      the global ids of its nodes
            halo/<storage_overhead>/       subgraph_approx alone: remote nodes of the part, see data/derived.py
                arrays.json  nodes.npy  features.npy  indptr.npy  indices.npy
        topology/          ggs and full_sync alone: the full graph's edges, without features and labels
            arrays.json  indptr.npy  indices.npy
            owner.npy  position.npy        the part of every node, and its row within that part

A machine needs nothing but its own folder, and topology/ where its method reads it. `manifest.json` describes all parts
and is read by the server and by people.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.config.schema import Verify
from llcg_dist.data import progress
from llcg_dist.data.atomic_files import save_array, write_json
from llcg_dist.data.graph import NAMED_ITEMS, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.shard_checks import REBUILD, arrays_fit_together, require, require_in_range
from llcg_dist.errors import UserError, first_line

SCHEMA_VERSION = 2
_ARRAY_NAME = re.compile("[a-z_]{1,40}")  # a name becomes a path, and must not lead out of the folder
_MANIFEST_TYPES = {
    "store_id": str,
    "dataset": dict,
    "partitioner": str,
    "seed": int,
    "num_parts": int,
    "num_nodes": int,
    "num_edges": int,
    "cut_edges": int,
    "label_counts": list,
    "parts": list,
}
_BLOCK_BYTES = 1 << 24
_GRAPH_ARRAYS = ("indptr", "indices", "features", "labels", "split")


@dataclass(frozen=True)
class Shard:
    """global/ or part<p>/ of a store, opened memory-mapped: the graph, extra arrays, and the content of graph.json."""

    graph: Graph
    extra: dict[str, Array]
    meta: dict[str, Any]

    @property
    def store_id(self) -> str:
        """Equal in all folders of one store, and different in any other store."""
        return str(self.meta["store_id"])


def write_shard(folder: Path, graph: Graph, store_id: str, **extra: Array) -> dict[str, Any]:
    """Writes a graph and extra arrays; returns the content of graph.json, which also goes into the manifest."""
    names = {f"{what}_names": names for what, names in graph.names.items()}
    arrays = {name: getattr(graph, name) for name in _GRAPH_ARRAYS} | names | extra
    fields = {"store_id": store_id, "num_classes": graph.num_classes, "task": graph.task, "metric": graph.metric}
    return _write(folder, "graph.json", arrays, fields)


def write_arrays(folder: Path, arrays: dict[str, Array], store_id: str) -> dict[str, Any]:
    """Writes arrays that belong to a store; returns the content of arrays.json."""
    return _write(folder, "arrays.json", arrays, {"store_id": store_id})


def extend_shard(folder: Path, **extra: Array) -> dict[str, Any]:
    """Adds arrays to a folder that write_shard wrote; returns the new content of graph.json."""
    fields = read_json(folder / "graph.json")
    present = fields.pop("arrays")
    return _write(folder, "graph.json", extra, fields, present)


def _write(
    folder: Path,
    json_name: str,
    arrays: dict[str, Array],
    fields: dict[str, Any],
    present: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes arrays as .npy files, and a JSON file with `fields` and each array's dtype, shape, size and checksum.

    `present` are the descriptions of arrays that the folder holds already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    described = dict(present or {})
    for name, array in arrays.items():
        save_array(folder / f"{name}.npy", array)
        described[name] = {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "bytes": (folder / f"{name}.npy").stat().st_size,
            "sha256": file_sha256(folder / f"{name}.npy"),
        }
    meta = {"schema_version": SCHEMA_VERSION} | fields | {"arrays": described}
    write_json(folder / json_name, meta)
    return meta


def read_shard(folder: Path, verify: Verify = Verify.sizes) -> Shard:
    """Opens one folder and checks its files against graph.json: `sizes` dtypes and shapes, `full` also
    checksums, and that no number leads out of an array: the checksums are those of whoever wrote the folder."""
    path = folder / "graph.json"
    meta, arrays = _read(path, _GRAPH_ARRAYS, ("num_classes", "task", "metric"), verify)
    fields: dict[str, Any] = {key: meta[key] for key in ("num_classes", "task", "metric")}
    fields |= {name: arrays.pop(name) for name in _GRAPH_ARRAYS}
    names = {what: arrays.pop(f"{what}_names") for what in NAMED_ITEMS if f"{what}_names" in arrays}
    graph = Graph(**fields, names=names)
    require(arrays_fit_together(graph), path, "the arrays do not fit together")
    if verify == Verify.full:
        require_in_range(path, graph, arrays)
    return Shard(graph, arrays, meta)


def read_arrays(
    folder: Path, required: tuple[str, ...], store_id: str, verify: Verify = Verify.sizes
) -> dict[str, Array]:
    """Opens what write_arrays wrote; raises UserError where it belongs to another store."""
    path = folder / "arrays.json"
    meta, arrays = _read(path, required, (), verify)
    if str(meta["store_id"]) != store_id:
        raise UserError(f"{path}: belongs to another store; {REBUILD}")
    return arrays


def _read(
    path: Path, required: tuple[str, ...], keys: tuple[str, ...], verify: Verify
) -> tuple[dict[str, Any], dict[str, Array]]:
    """(content of the JSON file `path`, the arrays that it describes); `keys` and `required` arrays must be there."""
    meta = read_json(path)
    _check_version(path, meta)
    try:
        described = {name: (entry["dtype"], entry["shape"], entry["sha256"]) for name, entry in meta["arrays"].items()}
        for key in ("store_id", *keys):
            str(meta[key])
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: {error} is missing or of the wrong kind; {REBUILD}") from None
    invalid = [name for name in described if not _ARRAY_NAME.fullmatch(name)]
    missing = [name for name in required if name not in described]
    if invalid or missing:
        reason = f"{invalid[0]!r} is no array's name" if invalid else f"the array {missing[0]} is missing"
        raise UserError(f"{path}: {reason}; {REBUILD}")
    return meta, {name: _open_array(path.parent / f"{name}.npy", *entry, verify) for name, entry in described.items()}


def read_manifest(store: Path) -> dict[str, Any]:
    """The content of manifest.json; raises UserError where keys are missing, or the counts of a part."""
    path = store / "manifest.json"
    manifest = read_json(path)
    _check_version(path, manifest)
    for key, kind in _MANIFEST_TYPES.items():
        if not isinstance(manifest.get(key), kind):
            raise UserError(f"{path}: {key} is missing or of the wrong kind; {REBUILD}")
    for part in manifest["parts"]:
        counts = ("nodes", "edges", "cut_edges", "train_nodes", "bytes")
        complete = isinstance(part, dict) and all(isinstance(part.get(key), int) and part[key] >= 0 for key in counts)
        if not complete or not _are_counts(part.get("label_counts"), len(manifest["label_counts"])):
            raise UserError(f"{path}: a part's description is damaged; {REBUILD}")
    if len(manifest["parts"]) != manifest["num_parts"] or not _are_counts(manifest["label_counts"]):
        raise UserError(f"{path}: the parts do not fit together; {REBUILD}")
    return manifest


def _are_counts(values: Any, length: int | None = None) -> bool:
    are_counts = isinstance(values, list) and all(isinstance(value, int) and value >= 0 for value in values)
    return are_counts and (length is None or len(values) == length)


def parts_on_disk(store: Path) -> list[int]:
    """The numbers of the parts whose folders are in this store, ascending."""
    names = (path.parent.name for path in store.glob("part*/graph.json"))
    return sorted(int(name[4:]) for name in names if name[4:].isdigit())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises UserError for a missing file or other content."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; build the parts with `llcg partition`") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); {REBUILD}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a JSON object; {REBUILD}")
    return content


def _check_version(path: Path, meta: dict[str, Any]) -> None:
    version = meta.get("schema_version")
    if version != SCHEMA_VERSION:
        rule = f"schema version {version}, this program reads {SCHEMA_VERSION}; {REBUILD}"
        raise UserError(f"{path}: {rule}")


def _open_array(path: Path, dtype: str, shape: list[int], sha256: str, verify: Verify) -> Array:
    """Maps one .npy file into memory and checks it against its description."""
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {REBUILD}") from None
    except Exception as error:  # NumPy's header parser raises almost anything on a damaged file
        reason = first_line(error)
        raise UserError(f"{path}: not a readable .npy file ({reason}); {REBUILD}") from None
    if str(array.dtype) != dtype or list(array.shape) != shape:
        raise UserError(f"{path}: holds {array.dtype}{list(array.shape)}, graph.json says {dtype}{shape}; {REBUILD}")
    if verify == Verify.full and file_sha256(path) != sha256:
        raise UserError(f"{path}: its content is not what was written (sha256); {REBUILD}")
    return array


def file_sha256(path: Path) -> str:
    """The checksum of a file in hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            progress.advance()
    return digest.hexdigest()

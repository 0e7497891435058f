"""`llcg partition [--share PARTS --to FOLDER] [overrides]`: cuts the graph into parts and shows them in a table."""

import importlib.util
from pathlib import Path
from typing import Any

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.config.partition import Balance, PartitionConfig, PartitionMethod
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import PartitionQuality, label_skew
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.parts import assign_parts, metis_fits
from llcg_dist.data.share import write_share
from llcg_dist.data.store import read_shard
from llcg_dist.errors import UserError
from llcg_dist.records.console import percent, say, table


def partition(arguments: list[str]) -> int:
    """Builds the store of parts where it is missing; with --share also copies some of the parts to a folder."""
    overrides, share, target = _split_share_options(arguments)
    config = load_config(overrides)
    store, manifest = ensure_store(config, say, build_algorithm(config).data_access)
    print_parts(manifest)
    method = PartitionMethod(manifest["partitioner"])
    plain = method == PartitionMethod.metis and config.partition.balances <= {Balance.none, Balance.nodes}
    if not plain and method != PartitionMethod.stream:
        _print_beside_metis(config, store, manifest)
    say(f"parts in {store}")
    if share:
        say(f"share of {share} in {write_share(store, manifest['num_parts'], share.split(','), Path(target))}")
    return 0


def _print_beside_metis(config: Config, store: Path, manifest: dict[str, Any]) -> None:
    """These parts and plain METIS's, in numbers that matter: edges lost, balance, label skew. Nothing where METIS is
    not installed, or has not memory enough."""
    installed = importlib.util.find_spec("dgl") or importlib.util.find_spec("pymetis")
    if not installed or not metis_fits(2 * manifest["num_edges"], config.partition.backend):
        return
    shard, P = read_shard(store / "global"), manifest["num_parts"]
    plain = PartitionConfig(seed=config.partition.seed, backend=config.partition.backend)
    assignments = {
        "these parts": shard.extra["assignment"],
        "metis": assign_parts(shard.graph, P, plain),
    }
    rows = []
    for name, assignment in assignments.items():
        quality = PartitionQuality.of(shard.graph, assignment, P)
        numbers = (quality.cut_share, quality.largest_part, quality.largest_training_part, quality.worst_label_skew)
        rows.append([name, *(percent(number) for number in numbers)])
    say(table(["", "cut edges %", "largest part %", "most training nodes %", "worst label skew %"], rows))


def _split_share_options(arguments: list[str]) -> tuple[list[str], str, str]:
    """The overrides, and the values of --share and --to, which are empty where the options are missing."""
    overrides, options = list(arguments), {"--share": "", "--to": ""}
    for option in options:
        if option in overrides:
            index = overrides.index(option)
            options[option] = overrides[index + 1] if index + 1 < len(overrides) else ""
            del overrides[index : index + 2]
    given = {"--share", "--to"} & set(arguments)
    if bool(options["--share"]) != bool(options["--to"]) or given and not options["--to"]:
        raise UserError("llcg partition: --share PARTS and --to FOLDER go together, e.g. --share 0,2 --to /mnt/host2")
    return overrides, options["--share"], options["--to"]


def print_parts(manifest: dict[str, Any]) -> None:
    """Shows a store's manifest as a table: size, training nodes, cut edges and label skew of every part."""
    rows = [
        [
            f"part {p}",
            f"{part['nodes']:,}",
            f"{part['edges']:,}",
            f"{part['train_nodes']:,}",
            f"{part['cut_edges']:,}",
            percent(label_skew(part["label_counts"], manifest["label_counts"])),
            f"{part['bytes'] / 1e6:.1f}",
        ]
        for p, part in enumerate(manifest["parts"])
    ]
    say(table(["", "nodes", "edges", "train nodes", "cut edges", "label skew %", "MB"], rows))
    share = manifest["cut_edges"] / max(1, manifest["num_edges"])
    say(f"{manifest['cut_edges']:,} of {manifest['num_edges']:,} edges are cut ({100 * share:.1f} %)")

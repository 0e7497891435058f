"""The table of a store's parts."""

from typing import Any

from llcg_dist.data.cut import label_skew
from llcg_dist.records.console import percent, say, table


def print_parts(manifest: dict[str, Any]) -> None:
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

"""A machine holds its own part and nothing else: its memory shows it."""

import json
from pathlib import Path

from tests.helpers.jobs import llcg
from tests.helpers.run_files import summary

# The same step on both graphs: same widths, batches, fan-out and number of steps; only the number of nodes differs.
STEP = [
    "dataset.features=512", "dataset.degree=8", "dataset.classes=8", "partition=random", "cluster.num_machines=2",
    "algorithm=psgd_pa", "algorithm.K=40", "num_rounds=2", "evaluate.every=0", "train.local_batch_size=256",
]  # fmt: skip


def peak(tmp_path: Path, name: str, nodes: int) -> tuple[float, float]:
    """(a machine's peak memory, its part's size), both in MB."""
    overrides = [
        *STEP,
        f"dataset.nodes={nodes}",
        f"partition.root={tmp_path}/{name}_parts",
        f"run_dir={tmp_path}/{name}",
    ]
    outcome = llcg("train", *overrides)
    assert outcome.code == 0, outcome.err
    manifest = next((tmp_path / f"{name}_parts").glob("*/manifest.json"))
    part_bytes = min(part["bytes"] for part in json.loads(manifest.read_text())["parts"])
    return summary(tmp_path / name)["peak_rss_mb_machine"], part_bytes / 2**20


def test_a_machine_needs_little_more_than_its_part(tmp_path: Path) -> None:
    large, part = peak(tmp_path, "large", 210_000)
    tiny, _ = peak(tmp_path, "tiny", 2_000)
    assert part >= 200
    assert large - tiny <= 1.5 * part
    assert large - tiny >= 0.2 * part, "the steps did not read the part: the measurement says nothing"

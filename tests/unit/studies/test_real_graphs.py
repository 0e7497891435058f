"""Accuracy on real graphs with the settings that are published as experiment=real/..., one machine."""

import json
from pathlib import Path
from statistics import mean

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.train import main as train
from tests.helpers.raw_files import real_data


def score_on_test(experiment: str, folder: str, place: Path, seed: int) -> float:
    root = real_data(folder, place)
    settings = [f"experiment=real/{experiment}", f"dataset.root={root}", f"partition.root={place / 'parts'}"]
    assert train([*settings, f"seed={seed}", f"run_dir={place / str(seed)}"]) == 0
    return float(json.loads((place / str(seed) / "summary.json").read_text())["test_score_at_best_val"])


@pytest.mark.parametrize(
    ("experiment", "graph"), [("cora_gcn", "Cora"), ("tolokers_sage", "Tolokers"), ("computers_sage", "Computers")]
)
def test_the_settings_compose(experiment: str, graph: str) -> None:
    config = load_config([f"experiment=real/{experiment}"])
    assert (config.dataset.name, config.algorithm.name, config.cluster.num_machines) == (graph, "single", 1)


@pytest.mark.full
def test_cora_gcn_reaches_79_percent_over_five_seeds(tmp_path: Path) -> None:
    assert mean(score_on_test("cora_gcn", "Planetoid", tmp_path, seed) for seed in range(5)) >= 0.79


@pytest.mark.full
def test_tolokers_sage_reaches_an_area_of_78_percent(tmp_path: Path) -> None:
    assert score_on_test("tolokers_sage", "Hetero", tmp_path, 0) >= 0.78


@pytest.mark.full
def test_computers_sage_reaches_88_percent(tmp_path: Path) -> None:
    assert score_on_test("computers_sage", "Amazon", tmp_path, 0) >= 0.88

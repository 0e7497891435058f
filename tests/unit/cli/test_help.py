"""`llcg train --help` tells every key."""

import dataclasses

from llcg_dist.cli.help import describe
from llcg_dist.config.compare import flat_items
from llcg_dist.config.datasets import DATASETS
from tests.helpers.settings import DEFAULT


def test_help_covers_every_key_with_its_type_and_default() -> None:
    """But for the names that a group's choice sets; and the keys of every other source of graphs besides."""
    described = {key: (type_name, default, text) for key, type_name, default, text in describe()}
    chosen_by_group = {"dataset.source", "model.name", "algorithm.name", "partition.method"}
    of_sources = {f"dataset.{field.name}" for source in DATASETS.values() for field in dataclasses.fields(source)}
    assert set(described) == (set(flat_items(DEFAULT)) | of_sources) - chosen_by_group
    assert described["algorithm.K"][:2] == ("float", 8.0)
    assert described["algorithm.max_local_steps"][:2] == ("int | None", None)
    assert "correction" in described["algorithm.S"][2].lower()
    assert described["dataset.seed"][2]  # inherited from the schema of all datasets
    assert described["run_dir"][2]

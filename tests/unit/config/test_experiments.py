"""conf/experiment: every cell of the paper's Table 1 and every method of Figure 11, written `experiment=paper/FILE
algorithm=METHOD`, has the authors' settings; an unknown experiment is answered with those there are."""

import csv
import importlib.resources
from pathlib import Path

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.models.registry import structure
from tests.helpers.settings import CONF, refusal

TABLE1_MODELS = {
    "flickr": ("sage", "gat", "appnp"),
    "proteins": ("sage", "gat", "appnp"),
    "arxiv": ("gcn", "gat", "appnp"),
    "reddit": ("sage", "gat", "appnp"),
}
DATASET = {
    "flickr": "flickr",
    "proteins": "ogbn-proteins",
    "arxiv": "ogbn-arxiv",
    "reddit": "reddit",
    "products": "ogbn-products",
    "mag240m": "mag240m",
}
TABLE1 = {
    (f"paper/{dataset}_{model}", method): (dataset, model)
    for dataset, models in TABLE1_MODELS.items()
    for model in models
    for method in ("psgd_pa", "ggs", "llcg")
}
FIGURE11 = {
    (f"paper/{dataset}16", method): (dataset, model)
    for dataset, model in (("products", "sage"), ("mag240m", "skip_sage"))
    for method in ("psgd_pa", "subgraph_approx", "full_sync", "llcg")
}
CELLS = TABLE1 | FIGURE11

# hidden, dropout, eta, R, K, B_L, fan-out, B_S, gamma: the authors' settings
SETTINGS = {
    "arxiv": (256, 0.5, 1e-3, 100, 64, 256, [10, 10, 10], 2048, 1e-2),
    "flickr": (256, 0.2, 1e-3, 50, 8, 64, [10, 10], 512, 5e-3),
    "proteins": (256, 0.0, 1e-3, 100, 32, 512, [10, 10, 10], 4096, 2e-2),
    "reddit": (256, 0.5, 2e-2, 75, 64, 256, [10, 10, 10], 2048, 1e-2),
    "products": (256, 0.5, 3e-3, 50, 16, 1024, [10, 10, 10], 8192, 3e-3),
    "mag240m": (1024, 0.5, 1e-3, 400, 20, 1024, [15, 25], 1024, 1e-3),
}


def test_the_papers_table_has_these_cells() -> None:
    """The report sets the paper's numbers beside a run of a cell: it must know each of them, and no other."""
    text = (importlib.resources.files("llcg_dist.report") / "table1.csv").read_text()
    printed = [(row["dataset"].split()[0], row["method"]) for row in csv.DictReader(text.splitlines())]
    assert sorted(printed) == sorted((dataset, method) for (_, method), (dataset, _) in CELLS.items())
    assert len(printed) == 36 + 8


@pytest.mark.parametrize(("experiment", "method"), CELLS)
def test_the_cell_composes_with_the_authors_settings(experiment: str, method: str) -> None:
    dataset, model = CELLS[experiment, method]
    config = load_config([f"experiment={experiment}", f"algorithm={method}"])
    assert (config.dataset.name, config.model.name, config.algorithm.name) == (DATASET[dataset], model, method)
    assert settings_of(config) == SETTINGS[dataset]
    assert config.cluster.num_machines == (8 if (experiment, method) in TABLE1 else 16)
    assert config.algorithm.schedule == "equal_total"
    assert config.algorithm.batchnorm_stats == "average"
    assert (config.algorithm.rho, config.algorithm.S) == ((1.1, 1) if method == "llcg" else (1.0, 0))


def settings_of(config: Config) -> tuple[object, ...]:
    model, train = config.model, config.train
    assert config.sampling.server_fanout == config.sampling.fanout
    return (
        *(model.hidden, model.dropout, train.local_lr, config.num_rounds, config.algorithm.K),
        *(train.local_batch_size, config.sampling.fanout, train.server_batch_size, train.server_lr),
    )


@pytest.mark.parametrize(
    ("experiment", "arch"),
    [
        ("paper/flickr_sage", "BSBSBL"),
        ("paper/proteins_sage", "SSS"),
        ("paper/arxiv_gcn", "GBGBG"),
        ("paper/reddit_sage", "SBSBS"),
        ("paper/products16", "SSS"),
    ],
)
def test_the_architecture_is_the_papers(experiment: str, arch: str) -> None:
    assert structure(load_config([f"experiment={experiment}"]).model).letters == arch


@pytest.mark.parametrize("path", sorted((CONF / "experiment").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_experiment_composes(path: Path) -> None:
    """By the name that a user writes: a base that is named relative to its own folder would not be found."""
    name = path.relative_to(CONF / "experiment").with_suffix("").as_posix()
    assert load_config([f"experiment={name}"]).num_rounds > 0


@pytest.mark.parametrize(
    ("override", "beginning"),
    [
        ("experiment=table1/arxiv_gcn_llcg", "experiment=table1/arxiv_gcn_llcg: must be one of paper/arxiv_gcn, "),
        ("experiment=arxiv_gcn", "experiment=arxiv_gcn: must be one of paper/arxiv_gcn, "),
        ("experiment=cora", "experiment=cora: must be one of real/cora_gcn, "),
        ("experiment=[tiny,figures/smal]", "experiment=figures/smal: must be one of figures/small, "),
        ("dataset=ogb-arxiv", "dataset=ogb-arxiv: must be one of ogbn-arxiv, "),
    ],
)
def test_an_unknown_choice_is_answered_with_the_nearest(override: str, beginning: str) -> None:
    assert refusal([override]).startswith(beginning)


def test_the_choices_include_sub_folders_in_one_short_line() -> None:
    message = refusal(["experiment=table1/arxiv"])
    assert all(f" {folder}/" in message for folder in ("figures", "paper", "real")), message
    assert all(f", {name}," in message for name in ("demo", "tiny"))
    assert "; llcg help experiment lists all" in message
    assert len(message) < 400


def test_a_group_without_sub_folders_names_every_choice() -> None:
    beginning, _, choices = refusal(["model=sge"]).partition(" must be one of ")
    assert beginning == "model=sge:"
    assert sorted(choices.partition(";")[0].split(", ")) == sorted(path.stem for path in (CONF / "model").iterdir())

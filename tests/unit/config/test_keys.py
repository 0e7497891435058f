"""What a misspelled key or choice may have meant."""

import pytest

from llcg_dist.config.keys import all_keys
from tests.helpers.settings import refusal


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("algoritm=llcg", "unknown key algoritm; did you mean algorithm? "),
        ("algorithm.k=3", "unknown key algorithm.k; did you mean algorithm.K? "),
        ("+algorithm.k=3", "unknown key algorithm.k; did you mean algorithm.K? "),
        ("K=3", "unknown key K; did you mean algorithm.K? "),
        ("num_round=3", "unknown key num_round; did you mean num_rounds? "),
        ("train.lr=1", "unknown key train.lr; did you mean train.local_lr or train.server_lr? "),
        ("dataset.edge=a.csv", "unknown key dataset.edge; did you mean dataset.edges (of dataset=files)? "),
        ("nothing=1", "unknown key nothing; `llcg train --help` lists the keys"),
    ],
)
def test_an_unknown_key(override: str, message: str) -> None:
    assert refusal([override]).startswith(message)


@pytest.mark.parametrize(
    ("override", "nearest"), [("algorithm=lcg", "llcg"), ("model=sge", "sage"), ("cluster.backend=glo", "gloo")]
)
def test_an_unknown_choice(override: str, nearest: str) -> None:
    message = refusal([override])
    assert message.startswith(f"{override}: must be one of ")
    assert message.endswith(f"; did you mean {nearest}?")


def test_a_choice_that_is_like_no_other() -> None:
    assert "did you mean" not in refusal(["algorithm=zzz"])


def test_a_key_of_another_dataset() -> None:
    assert refusal(["dataset.edges=a.csv"]) == (
        "dataset.edges: is a setting of dataset=files; add dataset=files to use it"
    )
    assert refusal(["experiment=tiny", "dataset=files"]) == (
        "experiment=tiny: sets dataset.nodes, which dataset=files does not have; leave out one of the two"
    )
    assert refusal(["dataset=files", "dataset.root=x"]).startswith("dataset.root: is a setting of dataset=flickr|")


def test_all_keys_are_there_once() -> None:
    keys = all_keys()
    assert len(keys) == len(set(keys))
    assert {"algorithm", "algorithm.K", "dataset.edges", "dataset.nodes", "num_rounds", "experiment"} <= set(keys)

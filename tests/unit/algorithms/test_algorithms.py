"""Methods by their name: what each may read and send, and what it does with the machines' models."""

import pytest
import torch
from torch import Tensor

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.comm.ledger import Kind
from llcg_dist.config.compare import flat_items
from llcg_dist.config.compose import load_config
from llcg_dist.data.derived import DataAccess
from llcg_dist.errors import UserError
from llcg_dist.training.screening import Models

P, F, G = Kind.PARAMETERS, Kind.FEATURES, Kind.GRADIENTS
METHODS = {
    "psgd_pa": ({P}, DataAccess.PART, True),
    "llcg": ({P}, DataAccess.PART, True),
    "subgraph_approx": ({P}, DataAccess.PART_AND_HALO, True),
    "ggs": ({P, F}, DataAccess.FULL_TOPOLOGY, True),
    "full_sync": ({P, F, G}, DataAccess.FULL_TOPOLOGY, True),
    "single": ({P}, DataAccess.FULL_GRAPH, False),
    "server_only": ({P}, DataAccess.PART, False),
}
"""Kinds of message that may cross, what a machine reads, and whether there are machines at all."""


@pytest.mark.parametrize("name", METHODS)
def test_what_may_cross_and_be_read(name: str) -> None:
    method = build_algorithm(load_config([f"algorithm={name}"]))
    assert (set(method.allowed_messages), method.data_access, method.trains_on_parts) == METHODS[name]
    assert method.num_machines == {"single": 1, "server_only": 0}.get(name, 4)
    assert method.local_batch_size == 64 * (4 if name == "single" else 1)


class AddsOne:
    """A corrector whose steps add one, whatever their number."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int | str]] = []

    def run(self, theta: Tensor, models: Models, steps: int | str) -> Tensor:
        self.taken.append((models.round, steps))
        return theta + 1


@pytest.mark.parametrize("name", METHODS)
def test_averages_corrections_and_local_steps_by_hand(name: str) -> None:
    method = build_algorithm(load_config([f"algorithm={name}", "algorithm.K=2", "algorithm.rho=1.0", "num_rounds=3"]))
    start, updates = torch.tensor([9.0, 9.0]), [torch.tensor([1.0, 2.0]), torch.tensor([5.0, 4.0])]
    models = Models(7, start, updates, [3.0, 1.0], [], torch.zeros(2, dtype=torch.bool))
    average = method.aggregate(start, models)
    assert average.tolist() == ([9.0, 9.0] if name == "server_only" else [2.0, 2.5])
    corrector = AddsOne()
    corrected = method.correct(average, models, corrector)  # type: ignore[arg-type]
    corrects = name in ("llcg", "server_only")
    assert (corrected - average).tolist() == ([1.0, 1.0] if corrects else [0.0, 0.0])
    assert corrector.taken == ([(7, 1)] if corrects else [])
    assert method.local_steps() == ([0, 0, 0] if name == "server_only" else [2, 2, 2])


def test_the_three_kinds_of_llcg() -> None:
    """The publication to the letter, with recalibration, and with everything that helps; the same class behind them."""
    paper, llcg, plus = (load_config([f"algorithm={name}"]) for name in ("llcg_paper", "llcg", "llcg_plus"))
    assert {type(build_algorithm(config)).__name__ for config in (paper, llcg, plus)} == {"Llcg"}
    as_llcg = flat_items(llcg) | {"algorithm.name": "llcg_paper", "algorithm.batchnorm_stats": "average"}
    assert flat_items(paper) == as_llcg
    own = {"algorithm.name": "llcg_plus", "algorithm.S": 16, "algorithm.batchnorm_stats": "best"}
    own |= {"sampling.server_fanout": 10, "train.lr_schedule": "cosine_end"}
    own |= {"partition.method": "clusters", "partition.balance": "labels"}
    assert flat_items(plus) == flat_items(llcg) | own


def test_what_llcg_plus_brings_is_left_out_where_the_user_sets_it() -> None:
    given = ["partition=metis", "sampling.server_fanout=-1", "algorithm.S=2"]
    assert load_config([*given, "algorithm=llcg_plus"]) == load_config(["algorithm=llcg_plus", *given])
    config = load_config(["algorithm=llcg_plus", *given])
    assert (config.partition.method, config.sampling.server_fanout, config.algorithm.S) == ("metis", -1, 2)


def test_an_unknown_algorithm_is_refused_however_it_is_named() -> None:
    with pytest.raises(UserError, match="algorithm") as refused:
        build_algorithm(load_config(["algorithm.name=fedavg"]))
    assert "psgd_pa" in str(refused.value)

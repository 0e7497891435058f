"""Optimisers by name and by dotted path."""

import pytest
import torch
from torch import nn

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.training.optimizer import build_optimizer, optimizer_class


def built(*overrides: str) -> torch.optim.Optimizer:
    return build_optimizer([nn.Parameter(torch.ones(3))], load_config(list(overrides)).train, 0.5)


def test_short_names_are_fused() -> None:
    adam, sgd = built(), built("train.optimizer=sgd", "train.optimizer_options.momentum=0.9", "train.weight_decay=0.1")
    assert type(adam) is torch.optim.Adam
    assert type(sgd) is torch.optim.SGD
    assert adam.defaults["fused"]
    assert {"lr": 0.5, "momentum": 0.9, "weight_decay": 0.1}.items() <= sgd.defaults.items()


def test_any_class_by_its_path() -> None:
    adamw = built("train.optimizer=torch.optim.AdamW", "train.optimizer_options.betas=[0.8,0.99]")
    assert type(adamw) is torch.optim.AdamW
    assert list(adamw.defaults["betas"]) == [0.8, 0.99]
    assert adamw.defaults["weight_decay"] == 0  # ours: train.weight_decay, not the class's own default
    assert type(built("train.optimizer=torch.optim.Rprop")) is torch.optim.Rprop  # takes no weight decay


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["train.optimizer=adamw"], "must be one of adam, sgd, or a dotted path"),
        (["train.optimizer=torch.optim.NoSuch"], "cannot be imported"),
        (["train.optimizer=torch.nn.Linear"], "must be a subclass of torch.optim.Optimizer"),
        (["train.optimizer=torch.optim.LBFGS"], "use another"),
        (["train.optimizer=torch.optim.Rprop", "train.weight_decay=0.1"], "refused weight_decay=0.1"),
        (["train.optimizer_options.momentum=0.9"], "refused momentum=0.9"),
    ],
)
def test_what_is_refused(overrides: list[str], says: str) -> None:
    with pytest.raises(UserError) as refused:
        built(*overrides)
    assert says in str(refused.value)


def test_the_class_is_checked_before_a_job_starts() -> None:
    with pytest.raises(UserError, match=r"train\.optimizer=torch\.optim\.LBFGS"):
        optimizer_class(load_config(["train.optimizer=torch.optim.LBFGS"]).train)

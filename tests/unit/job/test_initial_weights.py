"""The weights of a warm start: where they are looked for, and what is refused."""

from pathlib import Path

import pytest
import torch
from torch import nn

from llcg_dist.errors import UserError
from llcg_dist.job.initial_weights import read_initial_weights


def model(width: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))


def saved(path: Path, content: object) -> str:
    torch.save(content, path)
    return str(path)


def refusal(place: str) -> str:
    with pytest.raises(UserError) as refused:
        read_initial_weights(place, model())
    message = str(refused.value)
    assert message.startswith(f"init_from={place}: ")
    assert "\n" not in message
    return message


def test_a_file_or_the_best_model_of_a_run(tmp_path: Path) -> None:
    best, last = model().state_dict(), model().state_dict()
    best["1.running_mean"] += 5
    saved(tmp_path / "model.pt", last)
    assert torch.equal(read_initial_weights(str(tmp_path), model()).state["0.weight"], last["0.weight"])
    saved(tmp_path / "best.pt", best)
    found = read_initial_weights(str(tmp_path), model())
    assert found.path == tmp_path / "best.pt"
    assert found.state["1.running_mean"].tolist() == [5.0] * 3
    assert len(found.sha256) == 64
    assert read_initial_weights(str(tmp_path / "model.pt"), model()).sha256 != found.sha256


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    state = model().state_dict()
    file = tmp_path / "weights.pt"
    assert "0.weight of shape [4, 2], the model [3, 2]" in refusal(saved(file, model(4).state_dict()))
    assert "lacks 1.running_var" in refusal(saved(file, {k: v for k, v in state.items() if k != "1.running_var"}))
    assert "has the unknown head.weight" in refusal(saved(file, state | {"head.weight": torch.zeros(1)}))
    assert "0.bias with values" in refusal(saved(file, state | {"0.bias": torch.full((3,), float("nan"))}))
    assert "no state_dict" in refusal(saved(file, [1, 2]))
    assert "no state_dict" in refusal(saved(file, {"epoch": 3}))
    assert "UnpicklingError" in refusal(saved(file, {"code": Path("x")}))  # nothing is executed
    file.write_text("not torch's")
    refusal(str(file))
    assert "no such file" in refusal(str(tmp_path / "nowhere"))

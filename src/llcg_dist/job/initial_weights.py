"""A warm start: the weights that a run begins with, from another run or a file (init_from)."""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.errors import UserError

_NAMES_SHOWN = 3


@dataclass(frozen=True)
class InitialWeights:
    """A state_dict that fits the model, and where it came from."""

    state: dict[str, Tensor]
    path: Path
    sha256: str

    def as_json(self) -> dict[str, str]:
        return {"path": str(self.path), "sha256": self.sha256}


def read_initial_weights(place: str, model: nn.Module) -> InitialWeights:
    """Of `init_from`: best.pt or else model.pt of a run's folder, or a file. A UserError says what does not fit.

    Buffers come along: a state_dict of another name or shape, or without BatchNorm's statistics, is another model's.
    """
    path = _file_of(Path(place))
    where = f"init_from={place}"
    try:
        content = path.read_bytes()
        state = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except Exception as error:  # a file that is not torch's raises almost anything
        reason = f"{path} is not a state_dict saved by torch ({type(error).__name__})"
        raise UserError(f"{where}: {reason}; name another file") from None
    problem = _misfit(state, model.state_dict())
    if problem:
        raise UserError(f"{where}: {path} {problem}; choose the model that it was trained with")
    return InitialWeights(state, path, hashlib.sha256(content).hexdigest())


def _file_of(place: Path) -> Path:
    if place.is_file():
        return place
    found = [place / name for name in ("best.pt", "model.pt") if (place / name).is_file()]
    if not found:
        raise UserError(f"init_from={place}: no such file, and no run's folder with a best.pt or model.pt")
    return found[0]


def _misfit(state: Any, wanted: dict[str, Tensor]) -> str | None:
    """Why the loaded content does not fit a model's state_dict; None where it does."""
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        return "holds no state_dict"
    differences = {"lacks": [*wanted.keys() - state.keys()], "has the unknown": [*state.keys() - wanted.keys()]}
    for what, names in differences.items():
        if names:
            more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
            return f"{what} {', '.join(sorted(names)[:_NAMES_SHOWN])}{more}"
    for name, tensor in wanted.items():
        if state[name].shape != tensor.shape:
            return f"has {name} of shape {list(state[name].shape)}, the model {list(tensor.shape)}"
        if state[name].is_floating_point() != tensor.is_floating_point() or not bool(state[name].isfinite().all()):
            return f"has {name} with values that are no finite numbers of its kind"
    return None

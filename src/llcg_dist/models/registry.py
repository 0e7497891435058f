"""The models by name. Each is described by its letters (structure.py) and built by a module that is imported then."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from llcg_dist.config.model import ModelConfig, Norm
from llcg_dist.errors import UserError
from llcg_dist.models.structure import BATCHNORM, OWN_LAYER, Structure

if TYPE_CHECKING:
    from llcg_dist.models.base import Model

Letters = Callable[[ModelConfig], str]


@dataclass(frozen=True)
class ModelEntry:
    module: str
    """File of this package whose `build(config, num_features, num_classes)` makes the model."""
    letters: Letters
    """The model's layers, if model.arch does not spell them out."""
    takes_arch: bool = False
    """Whether model.arch may spell the layers out."""
    heads_share_hidden: bool = False


def _input_norm(config: ModelConfig) -> str:
    return BATCHNORM if config.input_norm else ""


def _between(config: ModelConfig) -> str:
    return BATCHNORM if config.norm == Norm.batch else ""


def _repeated(letter: str, end: str = "") -> Letters:
    """model.layers layers of one kind and then `end`, with BatchNorm between any two."""
    return lambda config: _input_norm(config) + _between(config).join(letter * config.layers + end)


def _residual(config: ModelConfig) -> str:
    step = _between(config) + "G"
    return f"{_input_norm(config)}L{step * config.layers}{_between(config)}L"


def _predict_then_propagate(config: ModelConfig) -> str:
    return (_input_norm(config) or _between(config)) + "L" + "P" * config.layers + "L"


MODELS = {
    "sage": ModelEntry("arch", _repeated("S"), takes_arch=True),
    "gcn": ModelEntry("arch", _repeated("G"), takes_arch=True),
    "mlp": ModelEntry("arch", _repeated("L"), takes_arch=True),
    "arch": ModelEntry("arch", lambda _: "", takes_arch=True),
    "gat": ModelEntry("gat", _repeated("A"), heads_share_hidden=True),
    "appnp": ModelEntry("appnp", _predict_then_propagate),
    "resgcn": ModelEntry("resgcn", _residual),
    "skip_sage": ModelEntry("skip_sage", _repeated("S", end="LL")),
}


OWN = "own"
_OWN = ModelEntry("own", lambda config: OWN_LAYER * config.layers)
"""A class or function of the user's, which model.target names."""


def model_entry(config: ModelConfig) -> ModelEntry:
    if config.target:
        return _OWN
    if config.name not in MODELS:
        raise UserError(f"model.name={config.name}: must be one of {', '.join(MODELS)}")
    return MODELS[config.name]


def structure(config: ModelConfig) -> Structure:
    """What the model is made of; model=sage with two layers and BatchNorm between them is SBS."""
    return Structure(config.arch or model_entry(config).letters(config))


def build_model(config: ModelConfig, num_features: int, num_classes: int) -> "Model":
    """The module with freshly initialised weights, drawn from torch's global generator."""
    model: Model = _module(model_entry(config)).build(config, num_features, num_classes)
    return model


def import_all() -> None:
    """Imports all models, and with them PyG, so that processes forked from this one share them."""
    for entry in (*MODELS.values(), _OWN):
        _module(entry)


def _module(entry: ModelEntry) -> ModuleType:
    return import_module(f"{__package__}.{entry.module}")

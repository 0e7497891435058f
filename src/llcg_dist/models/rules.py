"""Settings that a model cannot work with: its own, and those of batches and sampling that depend on its layers."""

from llcg_dist.config.algorithm import AUTO
from llcg_dist.config.rules import require
from llcg_dist.config.schema import Config
from llcg_dist.config.train import Precision
from llcg_dist.errors import UserError
from llcg_dist.models.registry import MODELS, OWN, model_entry, structure


def check_model(config: Config) -> None:
    """Raises UserError for the first setting that the model cannot work with."""
    model = config.model
    rule = "must be the dotted path of a class or function with model=own, e.g. my_package.nets.MyNet"
    require(model.name != OWN or model.target is not None, config, "model.target", rule)
    rule = f"use model=own; {model.name} is a model of ours"
    require(model.target is None or model.name not in MODELS, config, "model.target", rule)
    rule = "a model of one's own is evaluated batch by batch and keeps no hidden states; use float32"
    require(model.target is None or config.evaluate.states == Precision.float32, config, "evaluate.states", rule)
    _check_arch(config)
    if model_entry(model).heads_share_hidden:
        rule = f"must divide model.hidden={model.hidden}, which the heads share"
        require(model.hidden % model.heads == 0, config, "model.heads", rule)
    _check_batches(config)
    depth = structure(model).depth
    rule = f"must be one number, or one for each of the model's {depth} message-passing layers"
    for name in ("fanout", "server_fanout"):
        fanout = getattr(config.sampling, name)
        fits = not isinstance(fanout, list) or len(fanout) == depth or model.target is not None
        require(fits, config, f"sampling.{name}", rule)


def _check_arch(config: Config) -> None:
    model = config.model
    if not model_entry(model).takes_arch:
        require(model.arch is None, config, "model.arch", f"model={model.name} has no arch; use model=arch")
        return
    letters = structure(model).letters
    if not letters:
        raise UserError("model.arch: must be set with model=arch, e.g. model.arch=SBSBS")
    if not set(letters) <= set("GSLB") or not set(letters) & set("GSL"):
        rule = "must be made of G (GCN), S (SAGE), L (linear) and B (BatchNorm), with at least one of G, S, L"
        raise UserError(f"model.arch={letters}: {rule}")
    if model.arch:
        rule = "has no effect on a model that is spelled out; write a leading B into model.arch"
        require(not model.input_norm, config, "model.input_norm", rule)


def _check_batches(config: Config) -> None:
    batch_size = config.train.server_batch_size
    made_of = structure(config.model)
    rule = "the model has no BatchNorm, so there is one score only; leave it off"
    require(made_of.may_have_batchnorm or not config.evaluate.both_statistics, config, "evaluate.both_statistics", rule)
    least = 4 if made_of.has_batchnorm else 2
    rule = f"must be at least {least} with algorithm.S=auto, which compares two halves of a batch"
    require(batch_size >= least or config.algorithm.S != AUTO, config, "train.server_batch_size", rule)
    if not made_of.has_batchnorm:
        return
    rule = "must be at least 2: BatchNorm cannot normalise a batch of one row; or use model.norm=none"
    require(batch_size >= 2 or not config.algorithm.corrects, config, "train.server_batch_size", rule)

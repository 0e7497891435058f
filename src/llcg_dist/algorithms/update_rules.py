"""Rules of the settings that say how updates are judged, aggregated and protected (algorithm.screen, aggregate, clip,
noise): whether a method has such updates, and enough machines."""

from typing import TYPE_CHECKING

from llcg_dist.comm.messages import MESSAGES
from llcg_dist.config.algorithm import Aggregate, BatchNormStats, Screen
from llcg_dist.config.rules import require
from llcg_dist.data.derived import DataAccess
from llcg_dist.models.registry import structure
from llcg_dist.training.robust import trimmed_machines

if TYPE_CHECKING:
    from llcg_dist.algorithms.base import Algorithm

_ENOUGH = 3
"""Of two machines that differ nobody can tell which is right."""


def check_updates(algorithm: "Algorithm") -> None:
    """Raises UserError for a setting that would have no effect, or another than its name says."""
    _check_screen(algorithm)
    _check_aggregate(algorithm)
    _check_protection(algorithm)


def _check_screen(algorithm: "Algorithm") -> None:
    config, settings = algorithm.config, algorithm.config.algorithm
    acts = settings.screen in (Screen.clip, Screen.refuse)
    rule = f"must be off or warn: {settings.name} averages no models of several machines"
    require(algorithm.judges_updates or not acts, config, "algorithm.screen", rule)
    rule = f"must be off or warn with fewer than {_ENOUGH} machines: nobody can tell which of two is right"
    require(algorithm.num_machines >= _ENOUGH or not acts, config, "algorithm.screen", rule)


def _check_aggregate(algorithm: "Algorithm") -> None:
    config, settings, machines = algorithm.config, algorithm.config.algorithm, algorithm.num_machines
    if settings.aggregate == Aggregate.mean:
        return
    rule = f"must be mean: {settings.name} averages no models of several machines"
    require(algorithm.judges_updates, config, "algorithm.aggregate", rule)
    rule = f"must be mean: {settings.label} has an aggregation of its own"
    require(not algorithm.overrides("aggregate"), config, "algorithm.aggregate", rule)
    enough = 2 if settings.aggregate == Aggregate.learned else _ENOUGH
    rule = f"must be mean with fewer than {enough} machines"
    require(machines >= enough, config, "algorithm.aggregate", rule)
    if settings.aggregate == Aggregate.trimmed_mean:
        rule = f"leaves out nobody of {machines} machines; one at either end is {1 / machines:.3g}"
        require(trimmed_machines(settings, machines) > 0, config, "algorithm.trim", rule)


def _check_protection(algorithm: "Algorithm") -> None:
    config, settings = algorithm.config, algorithm.config.algorithm
    if settings.clip is None:
        return
    rule = f"has no effect with algorithm={settings.name}: its machines send no models, or other messages besides"
    sends_models = algorithm.judges_updates and algorithm.messages == MESSAGES
    require(sends_models, config, "algorithm.clip", rule)
    if settings.noise:
        rule = f"must be 0 with algorithm={settings.name}: machines read features of other parts"
        require(algorithm.data_access is DataAccess.PART, config, "algorithm.noise", rule)
        rule = "must be 0 with algorithm.noise: machines would send gradients without noise"
        require(config.diagnostics.every == 0, config, "diagnostics.every", rule)
        rule = "must be recalibrate with algorithm.noise, or model.norm=none: statistics would cross without noise"
        recalibrated = settings.batchnorm_stats == BatchNormStats.recalibrate
        has_statistics = structure(config.model).may_have_batchnorm
        require(recalibrated or not has_statistics, config, "algorithm.batchnorm_stats", rule)
        rule = "must be false with algorithm.noise: machines do not send their statistics"
        require(not config.evaluate.both_statistics, config, "evaluate.both_statistics", rule)

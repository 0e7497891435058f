"""Builds what takes the server's correction steps, and measures how long one takes where S=fill has to know."""

import logging
import statistics
from collections.abc import Sequence
from typing import Any

from llcg_dist import seeding
from llcg_dist.config.algorithm import AUTO, Aggregate, Correction
from llcg_dist.job.open_run import OpenRun
from llcg_dist.job.start import Start
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.auto_s import StepChooser
from llcg_dist.training.correction import Corrector
from llcg_dist.training.fill_plan import FillPlan, fill_ratio, seconds_of_step
from llcg_dist.training.flat_vector import flatten, layer_sizes
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.mixing import LayerMixer
from llcg_dist.training.trainer import StepSettings, Trainer

log = logging.getLogger(__name__)


def _trainer(
    run: OpenRun, start: Start, model: Model, steps: list[int], stream: int = seeding.SERVER_STREAM
) -> Trainer:
    """Takes the server's own steps on the full graph, with the random numbers of this stream."""
    config, view = run.config, run.correction_view
    rates = LearningRates(config.train, steps, start.planned_rounds)
    lr, lr_factor = run.algorithm.server_learning_rate(rates)
    settings = StepSettings(stream, config.seed, config.train.server_batch_size, lr, lr_factor)
    sampler = sampler_for(model, view.topology, config.sampling.server_fanout)
    return Trainer(view, model, sampler, settings, config.train, run.device)


def build_corrector(run: OpenRun, start: Start, model: Model, steps: list[int], fill_ratio: float | None) -> Corrector:
    """Takes the server's own steps, and knows their number with S=auto and S=fill."""
    settings, chooser = run.config.algorithm, None
    if settings.S == AUTO and run.assignment is not None:
        mean_steps = statistics.mean(steps[: start.planned_rounds])
        chooser = StepChooser(run.config, run.full.graph, run.assignment, mean_steps, run.device)
    plan = FillPlan(fill_ratio, steps, settings.S_max) if fill_ratio else None
    expected = settings.fixed_correction_steps if settings.correction == Correction.after else 0
    return Corrector(_trainer(run, start, model, steps), chooser, plan, expected)


def build_mixer(run: OpenRun, start: Start, steps: list[int]) -> LayerMixer | None:
    """What fits the weights of aggregate=learned, on batches like those of the correction; None with another."""
    settings = run.config.algorithm
    if settings.aggregate != Aggregate.learned:
        return None
    model = run.new_model()
    return LayerMixer(_trainer(run, start, model, steps, seeding.MIXING_STREAM), layer_sizes(model), settings)


def fill_record(run: OpenRun, start: Start, steps: list[int], step_seconds: Sequence[float]) -> dict[str, Any]:
    """What S=fill plans with, for starts.json: the ratio, and what it follows from where that was measured now; empty
    with another S. `step_seconds`: CPU seconds of a local step at every part's machine."""
    if not start.lacks_fill_ratio(run.config):
        return {"ratio": start.fill_ratio} if start.fill_ratio else {}
    model, local = run.new_model(), list(step_seconds)
    server = seconds_of_step(_trainer(run, start, model, steps), flatten(model))
    planned = [share * seconds for share, seconds in zip(start.shares(len(local)), local, strict=True)]
    measured = {"ratio": fill_ratio(planned, server), "cpu_local_step_by_part": local, "cpu_server_step": server}
    log.info("S=fill: %s", measured)
    return measured

"""Builds a machine: construction apart from behaviour."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.comm.error_feedback import MachineCompressor, machine_compressor
from llcg_dist.comm.machine_channel import Handler
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.config.algorithm import NoiseSeed
from llcg_dist.config.schema import Config
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.views import View
from llcg_dist.job.checkpoint import CheckpointWriter, explain_misfit, part_owner
from llcg_dist.job.devices import draws_ahead, threads_per_rank
from llcg_dist.job.machine import Machine, MachineCheckpoints
from llcg_dist.job.mirrored_files import open_files
from llcg_dist.job.protected_machine import ProtectedMachine, noise_secret
from llcg_dist.job.start import Start
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.diagnostics import LocalGradient
from llcg_dist.training.fill_plan import seconds_of_step
from llcg_dist.training.flat_vector import flatten, statistics_mask
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.loss import calibration, class_shares
from llcg_dist.training.protection import Protection
from llcg_dist.training.trainer import StepSettings, Trainer


@dataclass(frozen=True)
class OpenPart:
    """A part as its machine has opened it."""

    config: Config
    algorithm: Algorithm
    part: int
    view: View
    checkpoints: Path
    """Folder of the checkpoints."""
    device: str = "cpu"
    fetched: FeatureTraffic = field(default_factory=FeatureTraffic)
    """Counts the remote features that `view` fetches."""


def build_machine(part: OpenPart, start: Start) -> tuple[Handler, MachineCompressor]:
    """The machine of a part, and the compressor of its channel."""
    config, algorithm, view = part.config, part.algorithm, part.view
    model = build_model(config.model, view.num_features, view.num_classes)
    compressor = machine_compressor(config.algorithm.exchange_dtype, statistics_mask(model))
    steps = start.local_steps(algorithm, part.part)
    trainer = part_trainer(part, start, model, steps)
    files, keep = open_files(part.checkpoints, config.checkpoint.mirror, part_owner(part.part)), config.checkpoint
    lost = part.part in start.lost
    writer = CheckpointWriter(files, keep.every, keep.keep, config.num_rounds, 0 if lost else start.round)
    checkpoints = MachineCheckpoints(writer, algorithm, trainer, compressor)
    checkpoints.lost = lost
    if start.round and not lost:
        saved = files.load(start.round)
        with explain_misfit(part_owner(part.part), start.round):
            checkpoints.load(saved)
    if not start.returning:
        files.remove_all() if start.over else files.set_aside_after(start.round)
    meter = LocalGradient(config, view, part.device) if config.diagnostics.every else None
    machine = Machine(algorithm, steps, trainer, checkpoints, part.fetched, meter)
    return _protected(machine, part, trainer.statistics), compressor


def _protected(machine: Machine, part: OpenPart, statistics: Tensor) -> Handler:
    """The machine, or what stands between it and the channel where its updates are clipped."""
    settings = part.config.algorithm
    if settings.clip is None:
        return machine
    by_secret = settings.noise > 0 and settings.noise_seed == NoiseSeed.secret
    source = noise_secret(part.checkpoints, part.part) if by_secret else part.config.seed
    protection = Protection(settings.clip, settings.noise, statistics, source, seeding.part_stream(part.part))
    return ProtectedMachine(machine, protection)


def seconds_of_local_step(part: OpenPart, start: Start) -> float:
    """CPU seconds of one local step, taken with a trainer and a method of its own: the machine's do not notice."""
    part = replace(part, algorithm=build_algorithm(part.config))
    model = build_model(part.config.model, part.view.num_features, part.view.num_classes)
    initial, steps = flatten(model), part.algorithm.local_steps(start.planned_rounds)
    return seconds_of_step(part_trainer(part, start, model, steps), initial)


def part_trainer(part: OpenPart, start: Start, model: Model, steps: list[int]) -> Trainer:
    """Takes the local steps of a part, on what `part.view` reads; `steps`: of rounds 1..R."""
    config, view = part.config, part.view
    rates = LearningRates(config.train, steps, start.planned_rounds)
    settings = StepSettings(
        stream=seeding.part_stream(part.part),
        seed=config.seed,
        batch_size=part.algorithm.local_batch_size,
        lr=config.train.local_lr,
        lr_factor=rates.machine,
        logit_shift=_logit_shift(view, start.class_shares),
        change_gradient=part.algorithm.local_gradient if part.algorithm.overrides("local_gradient") else None,
        after_steps=part.algorithm.after_local_steps if part.algorithm.overrides("after_local_steps") else None,
        draw_ahead=_draws_ahead(config, part.algorithm),
    )
    sampler = sampler_for(model, view.topology, config.sampling.fanout, config.sampling.method)
    return Trainer(view, model, sampler, settings, config.train, part.device)


def _draws_ahead(config: Config, algorithm: Algorithm) -> bool:
    """Remote features are fetched as a batch is drawn, by all machines at once: not in a thread of one's own."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    fetches = algorithm.data_access is DataAccess.FULL_TOPOLOGY
    threads = threads_per_rank(config.cluster.threads, ranks_here)
    return not fetches and draws_ahead(config.sampling.prefetch, threads, ranks_here)


def _logit_shift(view: View, global_shares: list[float] | None) -> Tensor | None:
    if global_shares is None:
        return None
    labels = view.labels(torch.from_numpy(view.train_nodes))
    local_shares = class_shares(labels, view.num_classes)
    return calibration(local_shares, torch.tensor(global_shares, dtype=torch.float64), len(labels), view.task)

"""The server's checkpoints: what they hold, and which round is durable at every rank."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.error_feedback import ServerCompressor
from llcg_dist.comm.ledger import Ledger, Traffic
from llcg_dist.comm.messages import TrainStats
from llcg_dist.errors import TrainingError
from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointFiles, CheckpointWriter, explain_misfit
from llcg_dist.job.resumption import losses, losses_at
from llcg_dist.job.start import Start
from llcg_dist.records.model_files import BEST_FILE
from llcg_dist.records.recorder import Recorder
from llcg_dist.records.rows import RoundResult, Row, require_rows, silent_parts
from llcg_dist.training.correction import Corrector
from llcg_dist.training.flat_vector import is_finite


class ServerState:
    """All that the server needs to resume a run, collected from those who hold it."""

    def __init__(
        self,
        algorithm: Algorithm,
        corrector: Corrector,
        compressor: ServerCompressor,
        ledger: Ledger,
        recorder: Recorder,
        start: Start,
    ) -> None:
        self._algorithm, self._corrector, self._compressor = algorithm, corrector, compressor
        self._ledger, self._recorder, self._start = ledger, recorder, start

    def lost(self) -> list[Row]:
        """What the run had lost when it went on, as starts.json and the record of the next round say it."""
        return losses(self._start.lost, self._start.round, self._algorithm.machine_state())

    def explain_divergence(self, result: RoundResult) -> str:
        """Why a round's model is not finite: an update that is far too long, or else the server's own step or steps."""
        if result.warnings:
            advice = "algorithm.screen=refuse would leave it out"
            return f"round {result.round}: the model diverged after {result.warnings[0]}; {advice}"
        if self._algorithm.takes_correction_steps:
            rate = self._algorithm.config.train.server_lr
            return f"round {result.round}: the correction diverged; lower train.server_lr (now {rate:g})"
        optimizer = self._algorithm.config.algorithm.server_optimizer
        return f"round {result.round}: the server's step diverged ({optimizer}); lower algorithm.server_step"

    def pack(self, result: RoundResult, unrecorded: Sequence[RoundResult]) -> dict[str, Any]:
        """The state after the round of `result`; rows of the rounds `unrecorded` before it wait for scores."""
        chooser, plan = self._corrector.chooser, self._corrector.plan
        average = {} if result.average is None else {"average": result.average}
        return average | {
            "theta": result.theta,
            "optimizer": self._corrector.trainer.optimizer_state(),
            "buffers": self._corrector.trainer.buffers(),
            "outer": self._algorithm.outer.state(),
            "method": self._algorithm.state_dict(),
            "exchange": self._compressor.state(),
            "auto_s": chooser.state() if chooser else None,
            "fill_ratio": plan.ratio if plan else None,
            "messages": self._ledger.as_json()["messages"],
            "result": _pack(result),
            "unrecorded": [_pack(earlier) | {"theta": earlier.scored} for earlier in unrecorded],
            "best": self._recorder.models.best,
            "speeds": self._start.speeds,
            "planned_rounds": self._start.planned_rounds,
            "elapsed": self._recorder.elapsed,
        }

    def load(self, saved: dict[str, Any], size: int) -> list[RoundResult]:
        """Takes the saved state over; returns the rounds up to the saved one that had no row yet when it was written.
        Raises what explain_misfit explains where it is of another shape."""
        theta = saved["theta"]
        if theta.shape != (size,):
            raise ValueError(f"{tuple(theta.shape)} parameters for a model of {size}")
        self._corrector.trainer.load_optimizer_state(saved["optimizer"])
        self._corrector.trainer.load_buffers(saved.get("buffers", {}))
        self._algorithm.outer.load_state(saved["outer"], size)
        self._algorithm.load_state_dict(saved.get("method", {}))
        self._algorithm.running_average.load(saved.get("average"), size)
        self._compressor.load_state(saved["exchange"])
        if self._corrector.chooser:
            self._corrector.chooser.load_state(saved["auto_s"])
        self._ledger.restore(saved["messages"])
        models, best_round = self._recorder.models, self._recorder.best_round
        if "best" in saved:
            models.load_best(saved["best"])
        elif best_round and (state := models.saved(BEST_FILE)):  # an earlier version has it in best.pt alone
            models.best = {"round": best_round, "state": state}
        earlier = saved.get("unrecorded", [])
        last = _unpack(saved["result"], theta, saved.get("average"))
        return [*(_unpack(values, values["theta"]) for values in earlier), last]


class ServerCheckpoints:
    """Resumes from the newest durable round, and saves every round that is due."""

    def __init__(
        self,
        files: CheckpointFiles,
        writer: CheckpointWriter,
        state: ServerState,
        recorder: Recorder,
        start: Start,
        initial: Tensor,
    ) -> None:
        """A run that does not go on from a round begins with the model `initial`."""
        self._files, self._writer, self._state, self._recorder = files, writer, state, recorder
        self._start, self._start_round, self._initial = start, start.round, initial
        self.lost_parts, self._lost = start.lost, losses_at(start.round, recorder.run_dir, state.lost())
        self.durable_round = 0 if start.lost else start.round
        """The newest round that every rank has a checkpoint of; machines that are gone do not count."""

    def start(self) -> tuple[Tensor, int, list[RoundResult]]:
        """The model to go on from, the first round to run, and the rounds before that are not recorded yet.

        Checkpoints of rounds that will be repeated are set aside, and rows removed, once the saved state is known to
        fit.
        """
        theta, unrecorded = self._initial, list[RoundResult]()
        if self._start_round:
            saved = self._files.load(self._start_round)
            with explain_misfit(SERVER_OWNER, self._start_round):
                saved_rounds = self._state.load(saved, theta.numel())
            theta, unrecorded = saved_rounds[-1].theta, saved_rounds
            require_rows(self._start.recorded, self._recorder.rows, self._recorder.run_dir)
        self._files.remove_all() if self._start.over else self._files.set_aside_after(self._start_round)
        self._recorder.start(self._start.over)
        self._files.mirror_records()
        return theta, self._start_round + 1, unrecorded

    def save(self, result: RoundResult, unrecorded: Sequence[RoundResult]) -> None:
        if not is_finite(result.theta):
            raise TrainingError(self._state.explain_divergence(result))
        self._writer.save(result.round, lambda: self._state.pack(result, unrecorded), before=self._recorder.sync)
        on_disk = [self._writer.durable_round, *(machine.checkpoint_round for machine in result.stats)]
        self.durable_round = max(self.durable_round, min(on_disk))
        self._writer.prune(self.durable_round)

    def finish(self) -> None:
        """Waits until nothing is being written."""
        self._writer.finish()

    def take_notes(self) -> Row:
        """At the end of the first round: what the machines began it without. In the round's checkpoint, so that a
        record that is made again says it too."""
        lost, self._lost = self._lost, []
        return {"checkpoint_lost": lost} if lost else {}

    def columns(self, result: RoundResult) -> Row:
        """What the round's record says of checkpoints; a machine tells of the one that it wrote last."""
        stats, writer = result.stats, self._writer
        warnings = [f"part {part}: parameters not finite, update skipped" for part in result.skipped_parts]
        absent = silent_parts(result.notes)
        parts = [part for part in range(len(stats) + len(absent)) if part not in absent]
        failed = [part for part, machine in zip(parts, stats, strict=True) if machine.checkpoint_failed]
        warnings += [f"part {part}: checkpoint not written" for part in failed]
        warnings += result.warnings
        warnings += [f"server: {writer.problem}"] if writer.problem else []
        warnings += self._files.take_warning()
        return {
            "checkpoint_round": self.durable_round,
            "checkpoint_bytes": writer.bytes + sum(machine.checkpoint_bytes for machine in stats),
            "seconds_checkpoint": max([writer.seconds, *(machine.seconds_checkpoint for machine in stats)]),
            "warnings": warnings,
        }


def planned_rounds(saved: dict[str, Any], num_rounds: int) -> int:
    """The rounds of the first start, which schedules follow: a run may be continued with more, never with fewer."""
    planned = saved.get("planned_rounds", num_rounds)
    if not isinstance(planned, int) or not 1 <= planned <= num_rounds:
        raise ValueError(f"planned for {planned} rounds")
    return planned


def recorded_rounds(saved: dict[str, Any], round_: int) -> int:
    """The rounds that had a row when the checkpoint of this one was written: never its own."""
    return max(0, round_ - 1 - len(saved.get("unrecorded", [])))


def _pack(result: RoundResult) -> dict[str, Any]:
    """Plain numbers and lists; models are stored beside them."""
    models = ("theta", "average")
    values = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name not in models}
    return values | {
        "stats": [dataclasses.asdict(machine) for machine in result.stats],
        "traffic": dataclasses.asdict(result.traffic),
    }


def _unpack(values: dict[str, Any], theta: Tensor, average: Tensor | None = None) -> RoundResult:
    models = {"theta": theta, "average": average}
    stats = [TrainStats(**machine) for machine in values["stats"]]
    return RoundResult(**values | models | {"stats": stats, "traffic": Traffic(**values["traffic"])})

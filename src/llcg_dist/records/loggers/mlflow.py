"""The MLflow logger: logs to MLFLOW_TRACKING_URI where that is set, else to files in <run_dir>/mlflow."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# So that an unreachable server delays a round by seconds; MLflow's defaults retry for minutes.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
# mlflow-skinny can write nothing but files without a server, and MLflow refuses them unless this is set.
os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")

from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Metric, Param  # noqa: E402

from llcg_dist.records.loggers.base import Point, Table, saved_id  # noqa: E402

_PARAMS_PER_BATCH = 100  # MLflow's own limit


class MLflow:
    """One MLflow run per run directory; its id is kept in mlflow.json, so that a resumed run continues it."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir.resolve()
        self._last_round = 0

    def start(self, settings: dict[str, Any], earlier: Sequence[Point]) -> None:
        self._client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or (self._run_dir / "mlflow").as_uri())
        id_file = self._run_dir / "mlflow.json"
        if id_file.exists():
            self._run = saved_id(id_file, "run_id")
            history = self._client.get_metric_history(self._run, "local_steps")
            self._last_round = max((metric.step for metric in history), default=0)
        else:
            self._run = self._create_run(settings)
            id_file.write_text(json.dumps({"run_id": self._run}) + "\n")
        for point in earlier:
            self.round(point)

    def _create_run(self, settings: dict[str, Any]) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "llcg_dist")
        experiment = self._client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment else self._client.create_experiment(name)
        run = str(self._client.create_run(experiment_id, run_name=self._run_dir.name).info.run_id)
        params = [Param(key, str(value)) for key, value in settings.items()]
        for first in range(0, len(params), _PARAMS_PER_BATCH):
            self._client.log_batch(run, params=params[first : first + _PARAMS_PER_BATCH])
        return run

    def round(self, point: Point) -> None:
        if point.round <= self._last_round:  # logged before the run was resumed
            return
        now = int(1000 * time.time())
        metrics = [Metric(key, value, now, point.round) for key, value in point.scalars.items()]
        metrics += [Metric(f"by_bytes/{key}", value, now, point.sent) for key, value in point.scores.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def finish(self, summary: dict[str, Any], comparison: Table) -> None:
        self._client.log_text(self._run, comparison.markdown(), "comparison.md")
        self._client.log_dict(self._run, summary, "summary.json")
        self._client.set_terminated(self._run)

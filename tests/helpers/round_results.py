"""The result of a round, with numbers of the test's own."""

from typing import Any

import torch

from llcg_dist.comm.ledger import Traffic
from llcg_dist.comm.messages import TrainStats
from llcg_dist.records.rows import RoundResult
from llcg_dist.training.evaluation import Evaluation, Scores

TRAFFIC = Traffic(
    bytes_up=100,
    bytes_down=200,
    feature_bytes=30,
    gradient_bytes=40,
    control_bytes=5,
    exchanges=1,
    feature_id_bytes=10,
    feature_row_bytes=20,
    sealing_bytes=160,
)


def round_result(round_: int = 1, **notes: Any) -> RoundResult:
    """Two machines, of three and five local steps."""
    stats = [TrainStats(0.5, 1.5, 3, 300.0, cpu_local=1.25), TrainStats(0.25, 1.0, 5, 400.0, cpu_local=0.75)]
    times: dict[str, Any] = {"seconds_exchange": 0.1, "seconds_correct": 0.2, "seconds_round": 2.0}
    times |= {"cpu_correct": 0.125, "cpu_round": 1.375}
    return RoundResult(round_, torch.zeros(2), stats, [1], TRAFFIC, **times, timeline={"machines": []}, notes=notes)


def evaluation(val: float, test: float = 0.5, train_loss: float = 1.25) -> Evaluation:
    """With recalibrated statistics; averaged ones score half."""
    of_kind = {"average": Scores(val / 2, test / 2, train_loss), "recalibrate": Scores(val, test, train_loss)}
    return Evaluation(val, test, train_loss, kind="recalibrate", of_kind=of_kind)

"""Where the time of a local step goes, by torch's profiler."""

from typing import Any

from torch.profiler import profile, record_function

from bench.step_contenders import trainer_of
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import Graph

KINDS = {
    "dense products": ("aten::mm", "aten::addmm", "aten::addmm_"),
    "sampling": ("sampling",),
    "sums over neighbours": ("aten::_embedding_bag", "aten::_embedding_bag_forward_only", "_SparseProductBackward"),
    "gather": ("aten::index_select",),
    "BatchNorm": ("aten::native_batch_norm", "aten::native_batch_norm_backward"),
    "ReLU and dropout": ("aten::random_", "aten::ge", "aten::mul_", "aten::clamp_", "aten::threshold_backward"),
}
"""Torch's own operations, by the kind that they are counted as."""


class _Recorded:
    """A sampler whose time the profiler shows under a name."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def sample(self, *given: Any, **named: Any) -> Any:
        with record_function("sampling"):
            return self._sampler.sample(*given, **named)


def shares_by_kind(config: Config, graph: Graph, steps: int = 8) -> dict[str, float]:
    """Percent of a local step's time, by kind of operation."""
    trainer = trainer_of(config, graph)
    trainer._sampler = _Recorded(trainer._sampler)
    trainer.begin_round(None, 1)  # its batches hold on to the sampler

    def take(count: int) -> None:
        for _ in range(count):
            trainer.backward()
            trainer.optimizer_step()

    take(2)
    with profile() as found:
        take(steps)
    each = {event.key: event.self_cpu_time_total for event in found.key_averages()}
    total = sum(each.values())
    kinds = {kind: 100 * sum(each.get(name, 0.0) for name in names) / total for kind, names in KINDS.items()}
    return kinds | {"everything else": 100 - sum(kinds.values())}

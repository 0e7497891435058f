"""Small jobs that together touch every method, both transports, resuming, rounding and what is measured on the way."""

from dataclasses import dataclass

MACHINES = 3
_COMMON = [
    "dataset.nodes=600",
    "dataset.classes=5",
    "dataset.features=16",
    "model.hidden=16",
    f"cluster.num_machines={MACHINES}",
    "num_rounds=4",
    "algorithm.K=3",
    "train.local_batch_size=32",
    "train.server_batch_size=64",
    "sampling.fanout=5",
    "logger=none",
]
_LOOPBACK = "cluster.backend=loopback"


@dataclass(frozen=True)
class Job:
    """`overrides` of `llcg train`. `shorter`: overrides of a first start, which the job then resumes."""

    name: str
    overrides: list[str]
    shorter: list[str] | None = None
    kill_after: int = 0
    """More than 0: SIGKILL once so many rounds are recorded, then start again."""

    @property
    def command(self) -> list[str]:
        return [*_COMMON, *self.overrides]


def _loopback(name: str, *overrides: str, shorter: list[str] | None = None) -> Job:
    return Job(name, [_LOOPBACK, *overrides], shorter)


_OTHERWISE = ["partition=metis", "sampling.server_fanout=-1", "train.lr_schedule=constant"]
_PLUS = ["algorithm=llcg_plus", "algorithm.S=4", *_OTHERWISE]

JOBS = [
    _loopback("psgd_pa", "algorithm=psgd_pa"),
    Job("llcg_processes", ["algorithm=llcg"]),
    _loopback("llcg_gcn_literal", "algorithm=llcg", "model=gcn", "algorithm.schedule=literal", "algorithm.S=2"),
    _loopback("llcg_plus_gat", *_PLUS, "model=gat", "model.heads=2"),
    _loopback("llcg_paper_arch", "algorithm=llcg_paper", "model=arch", "model.arch=BSBGBL"),
    Job("ggs_labor_processes", ["algorithm=ggs", "sampling.method=labor", "algorithm.feature_cache=4000"]),
    Job("full_sync_processes", ["algorithm=full_sync"]),
    _loopback("full_sync_resumed", "algorithm=full_sync", "train.optimizer=sgd", shorter=["num_rounds=2"]),
    _loopback("subgraph_approx", "algorithm=subgraph_approx", "model=appnp"),
    _loopback("single", "algorithm=single", "model=resgcn"),
    _loopback("server_only", "algorithm=server_only", "model=skip_sage"),
    _loopback(
        "int8_nesterov_resumed",
        "algorithm=llcg",
        "algorithm.exchange_dtype=int8",
        "algorithm.server_optimizer=nesterov",
        shorter=["num_rounds=2"],
    ),
    Job("int8_killed_processes", ["algorithm=llcg", "algorithm.exchange_dtype=int8", "num_rounds=30"], kill_after=4),
    _loopback("auto_s_resumed", "algorithm=llcg", "algorithm.S=auto", shorter=["num_rounds=2"]),
    _loopback(
        "diagnostics_labels",
        "algorithm=llcg",
        "diagnostics.every=2",
        "diagnostics.hessian_steps=2",
        "dataset.multilabel=6",
        "evaluate.both_statistics=true",
    ),
    Job("diagnostics_bfloat16_processes", ["diagnostics.every=3", "algorithm.exchange_dtype=bfloat16"]),
    _loopback(
        "calibrated_cut_edges",
        "algorithm=llcg",
        "partition=random",
        "train.local_loss=calibrated",
        "train.lr_schedule=warmup_cosine",
        "train.lr_unit=steps",
        "sampling.server_minibatch=cut_edges",
        "sampling.fanout=0.5",
        "algorithm.averaging=train_nodes",
        "evaluate.chunk=100",
    ),
]

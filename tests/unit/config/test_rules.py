"""Rules: a value that cannot work, alone or with others, is refused in one line that names its key."""

import re
from typing import Any

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.config.rules import validate
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from tests.helpers.settings import changed_default, refusal

BAD_OVERRIDES: list[tuple[list[str], str]] = [
    (["algorithm.K=0"], "algorithm.K"),
    (["algorithm.K=0.5"], "algorithm.K"),
    (["algorithm.S=-1"], "algorithm.S"),
    (["algorithm.S=0.5"], "algorithm.S"),
    (["algorithm=psgd_pa", "algorithm.S=1"], "algorithm.S"),
    (["run_dir=here", "partition.root=./here"], "run_dir"),
    (["algorithm=single", "algorithm.S=1"], "algorithm.S"),
    (["algorithm=server_only", "algorithm.S=0"], "algorithm.S"),
    (["algorithm=server_only", "algorithm.server_optimizer=adam"], "algorithm.server_optimizer"),
    (["algorithm=full_sync", "algorithm.server_optimizer=momentum"], "algorithm.server_optimizer"),
    (["algorithm.server_step=0.5"], "algorithm.server_step"),
    (["algorithm.exchange_dtype=float16"], "algorithm.exchange_dtype"),
    (["algorithm=full_sync", "algorithm.exchange_dtype=int8"], "algorithm.exchange_dtype"),
    (["algorithm=single", "algorithm.exchange_dtype=bfloat16"], "algorithm.exchange_dtype"),
    (["algorithm=server_only", "algorithm.exchange_dtype=int8"], "algorithm.exchange_dtype"),
    (["algorithm=server_only", "algorithm.S=auto"], "algorithm.S"),
    (["algorithm=psgd_pa", "algorithm.S=auto"], "algorithm.S"),
    (["algorithm.S=many"], "algorithm.S"),
    (["algorithm.S=true"], "algorithm.S"),
    (["algorithm.S=null"], "algorithm.S"),
    (["algorithm.S=[1]"], "algorithm.S"),
    (["algorithm.S=auto", "algorithm.S_max=0"], "algorithm.S_max"),
    (["algorithm.S=auto", "train.server_batch_size=3"], "train.server_batch_size"),
    (["algorithm.S=auto", "train.server_batch_size=1", "model.norm=none"], "train.server_batch_size"),
    (["algorithm.S=fill"], "algorithm.S"),
    (["algorithm=psgd_pa", "algorithm.S=fill", "algorithm.correction=beside"], "algorithm.S"),
    (["algorithm.correction=before"], "algorithm.correction"),
    (["algorithm.correction=beside", "algorithm.server_weight=0"], "algorithm.server_weight"),
    (["algorithm.correction=beside", "algorithm.server_weight=1"], "algorithm.server_weight"),
    (["algorithm.server_weight=0.3"], "algorithm.server_weight"),
    (["algorithm.correction=beside", "algorithm.S=fill", "algorithm.fill_ratio=0"], "algorithm.fill_ratio"),
    (["algorithm.correction=beside", "algorithm.fill_ratio=2"], "algorithm.fill_ratio"),
    *(
        ([f"algorithm={method}", "algorithm.correction=beside"], "algorithm.correction")
        for method in ("psgd_pa", "ggs", "full_sync", "subgraph_approx", "single", "server_only")
    ),
    (["dataset.nodes=0"], "dataset.nodes"),
    (["dataset.classes=0"], "dataset.classes"),
    (["dataset.nodes=20", "dataset.degree=20"], "dataset.degree"),
    (["dataset.degree=-1"], "dataset.degree"),
    (["dataset.homophily=1.5"], "dataset.homophily"),
    (["dataset.features=-1"], "dataset.features"),
    (["dataset.signal=nan"], "dataset.signal"),
    (["dataset.classes=1", "dataset.label_noise=0.1"], "dataset.label_noise"),
    (["dataset.multilabel=-1"], "dataset.multilabel"),
    (["dataset.train_fraction=0"], "dataset.train_fraction"),
    (["dataset.train_fraction=0.9", "dataset.val_fraction=0.2"], "dataset.val_fraction"),
    (["cluster.link_mbit=0"], "cluster.link_mbit"),
    (["diagnostics.every=-1"], "diagnostics.every"),
    (["diagnostics.repeats=1"], "diagnostics.repeats"),
    (["algorithm=ggs", "diagnostics.every=1"], "diagnostics.every"),
    (["evaluate.both_statistics=true", "model.norm=none"], "evaluate.both_statistics"),
    (["evaluate.both_statistics=true", "evaluate.every=0"], "evaluate.both_statistics"),
    (["model.name=transformer"], "model"),
    (["sampling.fanout=[10,10,10]"], "sampling.fanout"),
    (["sampling.server_fanout=[10]"], "sampling.server_fanout"),
    (["model=mlp", "sampling.fanout=[10]"], "sampling.fanout"),
    (["model=arch", "model.arch=null"], "model.arch"),
    (["train.local_batch_size=1"], "train.local_batch_size"),
    (["train.server_batch_size=1"], "train.server_batch_size"),
    (["model=mlp", "algorithm=single", "train.local_batch_size=1", "cluster.num_machines=1"], "train.local_batch_size"),
]


@pytest.mark.parametrize(("overrides", "key"), BAD_OVERRIDES, ids=lambda value: str(value))
def test_a_setting_that_breaks_a_rule_is_one_line_that_names_the_key(overrides: list[str], key: str) -> None:
    assert refusal(overrides).startswith(key)


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.norm=none"],
        ["model=mlp", "model.norm=none"],
        ["model=arch", "model.arch=GLS"],
        ["model=gat", "model.layers=1"],
        ["algorithm=single", "train.server_batch_size=1"],  # P batches in one, and no correction
    ],
)
def test_batches_of_one_are_fine_where_nothing_normalises_them(overrides: list[str]) -> None:
    config = load_config(["train.local_batch_size=1", *overrides])
    assert build_algorithm(config).config.train.local_batch_size == 1


def check(config: Config) -> None:
    """All rules, those of the model and the method too."""
    validate(config)
    build_algorithm(config)


BAD_VALUES: list[tuple[str, Any]] = [
    *((key, 0) for key in ("num_rounds", "cluster.num_machines", "model.hidden", "model.layers")),
    *((key, 0) for key in ("train.local_batch_size", "train.server_batch_size", "algorithm.max_local_steps")),
    *(
        (key, -1)
        for key in ("seed", "partition.seed", "dataset.seed", "algorithm.S", "evaluate.every", "cluster.threads")
    ),
    ("train.weight_decay", -0.1),
    ("train.weight_decay", float("inf")),
    ("train.weight_decay", float("nan")),
    ("num_rounds", 10**11),
    ("cluster.threads", 100_000),
    ("model.layers", 100_000),
    *((key, 0.0) for key in ("train.local_lr", "train.server_lr", "cluster.timeout", "algorithm.rho", "algorithm.K")),
    *((key, float("nan")) for key in ("train.local_lr", "algorithm.rho", "algorithm.K", "model.dropout")),
    *((key, float("inf")) for key in ("train.server_lr", "algorithm.rho", "algorithm.K")),
    ("model.dropout", 1.0),
    ("model.dropout", -0.1),
    *((key, "banana") for key in ("partition.method", "model.norm", "model.gcn_norm", "algorithm.schedule")),
    *((key, "banana") for key in ("algorithm.batchnorm_stats", "algorithm.averaging", "train.optimizer")),
    *((key, "banana") for key in ("train.optimizer_state", "cluster.backend", "cluster.device", "model.arch")),
    *((key, "banana") for key in ("train.local_loss", "train.lr_schedule", "train.lr_unit")),
    ("algorithm.server_optimizer", "banana"),
    *(
        (key, value)
        for key in ("train.lr_warmup", "algorithm.server_momentum", "evaluate.ema")
        for value in (-0.1, 1.0, float("nan"))
    ),
    *(("algorithm.server_step", value) for value in (0.0, -1.0, float("inf"), float("nan"))),
    ("model.arch", "BB"),
    ("model.arch", "sbs"),
    *(("sampling.fanout", value) for value in (0, -2, 2.5, "all", None, True, [], [5, 0], [5, -3], [[5], 5], {"a": 1})),
    *(("sampling.server_fanout", value) for value in (0, [5], [5, 5, 5])),
]


@pytest.mark.parametrize(("key", "value"), BAD_VALUES, ids=lambda value: str(value))
def test_a_value_that_cannot_work_is_one_line_that_names_the_key(key: str, value: Any) -> None:
    with pytest.raises(UserError) as refused:
        check(changed_default(**{key.replace(".", "__"): value}))
    message = str(refused.value)
    assert message.startswith(f"{key}={value}: ")
    assert len(message.splitlines()) == 1


GOOD_VALUES = [
    ("algorithm.K", 1.0),
    ("algorithm.S", 0),
    ("algorithm.S", "auto"),
    ("algorithm.max_local_steps", 1),
    ("algorithm.rho", 0.5),
    ("model.dropout", 0.0),
    ("model.arch", "BSBSBL"),
    ("sampling.fanout", -1),
    ("sampling.fanout", [5, -1]),
    ("evaluate.every", 0),
    ("cluster.num_machines", 1),
]


@pytest.mark.parametrize(("key", "value"), GOOD_VALUES, ids=lambda value: str(value))
def test_the_edges_of_what_is_allowed(key: str, value: Any) -> None:
    check(changed_default(**{key.replace(".", "__"): value}))


def test_a_fraction_of_a_step_is_fine_in_the_literal_schedule() -> None:
    check(changed_default(algorithm__K=0.042, algorithm__schedule="literal"))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model=gat", "model.heads=3"], "model.heads=3: must divide model.hidden=64"),
        (["model=gat", "model.arch=SBS"], "model.arch=SBS: model=gat has no arch"),
        (["model=appnp", "model.teleport=1.5"], "model.teleport=1.5: must lie in [0, 1]"),
        (["model=appnp", "sampling.fanout=[5,5,5]"], "one for each of the model's 2 message-passing layers"),
        (["model=arch", "model.arch=SBS", "model.input_norm=true"], "model.input_norm=True: has no effect"),
        (["model=arch", "model.arch=null"], "model.arch: must be set with model=arch"),
        (["model=arch", "model.arch=SXS"], "model.arch=SXS: must be made of"),
        (["model.name=transformer"], "model.name=transformer: must be one of sage"),
        (["evaluate.chunk=0"], "evaluate.chunk=0: must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(overrides: list[str], message: str) -> None:
    assert message in refusal(overrides)


@pytest.mark.parametrize("method", ["single", "server_only", "ggs", "full_sync"])
def test_diagnostics_are_refused_where_no_machine_trains_on_its_part_alone(method: str) -> None:
    assert refusal([f"algorithm={method}", "diagnostics.every=1"]).startswith("diagnostics.every=1: must be 0")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("cluster.backend=loopback", "opens no sockets"),
        ("cluster.backend=nccl", "NCCL"),
        ("algorithm=single", "nothing crosses"),
        ("algorithm=server_only", "nothing crosses"),
    ],
)
def test_an_audit_that_cannot_be_is_refused(setting: str, reason: str) -> None:
    load_config([setting])
    assert re.match(f"cluster.audit=True: .*{reason}", refusal([setting, "cluster.audit=true"]))

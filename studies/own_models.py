"""Does a PyG module learn under llcg_dist what it learns in a plain PyG loop?

    python -m studies.own_models --data FOLDER [--seeds 3] [--workers 2] [--out runs/own_models]

Seven modules as they are on Cora: a full-batch loop of 200 steps, `single` with the same steps over sampled subgraphs,
and llcg over four processes. FOLDER is the folder that PyG's Planetoid class reads. Finished runs are kept.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from bench.harness import Claim, Spread, publish, table
from torch import nn
from torch.nn import functional
from torch_geometric.datasets import Planetoid

from llcg_dist.cli.main import run as run_command
from llcg_dist.config.targets import call
from llcg_dist.training.threads import prepare_computing
from studies.pool import run_all
from studies.real_graphs import mean_std

SMALL = {"hidden_channels": 64, "num_layers": 2, "dropout": 0.5}
MODELS: dict[str, dict[str, Any]] = {
    "torch_geometric.nn.GraphSAGE": SMALL,
    "torch_geometric.nn.GCN": SMALL,
    "torch_geometric.nn.GAT": SMALL | {"heads": 4},
    "torch_geometric.nn.GIN": SMALL,
    "studies.pyg_models.GatV2": {},
    "studies.pyg_models.Jumping": {},
    "studies.pyg_models.Pna": {},
}
MORE_SEEDS = {"studies.pyg_models.Pna": 30, "torch_geometric.nn.GIN": 30}
"""Scores that differ by several points from seed to seed, in a plain loop too: so many that a mean of a gap is known to
half of WITHIN."""
STEPS, EVERY, FIRST_SEED = 200, 10, 20
COMMON = ["dataset=planetoid", "dataset.name=Cora", "cluster.num_machines=4", "logger=none", "train.weight_decay=5e-4"]
COMMON += ["sampling.fanout=-1", f"algorithm.K={EVERY}", f"num_rounds={STEPS // EVERY}"]
WITHIN = 1.5
"""Points between single and the plain loop, means over the seeds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/own_models"))
    arguments = parser.parse_args()
    prepare_computing(threads=1)
    out = arguments.out
    seeds = {target: range(FIRST_SEED, FIRST_SEED + (MORE_SEEDS.get(target) or arguments.seeds)) for target in MODELS}
    common = [*COMMON, f"dataset.root='{arguments.data}'", f"partition.root='{out / 'parts'}'"]
    single = ["algorithm=single", "train.local_batch_size=35"]  # single has the batch of all four machines
    runs = {_folder(out, "single", t, s): [*common, *single, *_model(t), f"seed={s}"] for t in MODELS for s in seeds[t]}
    run_all(runs, arguments.workers)
    rows, claims = [], []
    for target in MODELS:
        name = target.rpartition(".")[2]
        plain = [_plain_loop(arguments.data, target, seed, out) for seed in seeds[target]]
        ours = [_test_score(_folder(out, "single", target, seed)) for seed in seeds[target]]
        llcg = _over_processes(common, target, out)
        rows.append([name, str(len(plain)), mean_std(plain), mean_std(ours), f"{llcg:.1f}"])
        gap = statistics.mean(plain) - statistics.mean(ours)
        claims.append(Claim(f"{name}: plain loop - single, points", Spread.of([gap]), at_most=WITHIN))
    head = ["PyG module on Cora, test %", "seeds", "full-batch PyG loop", "single", "llcg, 4 processes, one seed"]
    publish("own_models", table(head, rows), claims)


def _model(target: str) -> list[str]:
    return ["model=own", f"model.target={target}", *(f"model.options.{k}={v}" for k, v in MODELS[target].items())]


def _folder(out: Path, method: str, target: str, seed: int) -> Path:
    return out / f"{method}-{target.rpartition('.')[2]}-{seed}"


def _test_score(folder: Path) -> float:
    """In %."""
    return 100 * float(json.loads((folder / "summary.json").read_text())["test_score_at_best_val"])


def _over_processes(common: list[str], target: str, out: Path) -> float:
    folder = _folder(out, "llcg", target, FIRST_SEED)
    settings = [
        *common,
        "algorithm=llcg",
        "algorithm.S=4",
        f"seed={FIRST_SEED}",
        *_model(target),
        f"run_dir='{folder}'",
    ]
    if not (folder / "summary.json").exists() and run_command(["train", *settings, f"run_dir='{folder}'"]) != 0:
        raise SystemExit(f"{folder} failed")
    return _test_score(folder)


def _plain_loop(data_folder: Path, target: str, seed: int, out: Path) -> float:
    """Test score in % at the best validation score of a full-batch loop, as PyG's examples have it."""
    kept = out / f"plain-{target.rpartition('.')[2]}-{seed}.json"
    if not kept.exists():
        data = Planetoid(str(data_folder), "Cora")[0]
        torch.manual_seed(seed)
        module: nn.Module = call(
            "model.target", target, in_channels=data.num_features, out_channels=7, **MODELS[target]
        )
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
        scores = []
        for step in range(1, STEPS + 1):
            module.train()
            optimizer.zero_grad()
            logits = module(data.x, data.edge_index)
            functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
            optimizer.step()
            if step % EVERY == 0:
                scores.append(_scores(module, data))
        kept.write_text(json.dumps(max(scores)[1]))
    return 100 * float(json.loads(kept.read_text()))


@torch.no_grad()
def _scores(module: nn.Module, data: Any) -> tuple[float, float]:
    """(validation, test) accuracy."""
    right = module.eval()(data.x, data.edge_index).argmax(dim=1) == data.y
    return right[data.val_mask].float().mean().item(), right[data.test_mask].float().mean().item()


if __name__ == "__main__":
    main()

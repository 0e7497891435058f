"""Time to accuracy where the network is slow: the plot the paper could not make.

    python -m bench.slow_network [--rates 100 1000] [--methods llcg ggs] [--out runs/slow_network] [--piece SECONDS]

A server and four machines, each a host of its own (network namespaces, joined by a bridge) behind a link of 100 Mbit/s
or 1 Gbit/s, train until they first reach 95 % of what `single` reaches without a network. That target is written down
before any of them starts. Needs root and iproute2.

A run that reaches the target is stopped there, one that does not after `--limit` seconds of training. Finished runs
stay in `--out`. `--piece` ends this call after so many seconds; the same command resumes after the last finished round.
"""

import argparse
import json
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.helpers.jobs import finish, llcg, printed
from tests.helpers.netns import Host, hosts, multinode

from bench.harness import PAGE, publish
from bench.link import megabits_per_second
from bench.time_to_target import Outcome, Rows, claims, draw, markdown
from llcg_dist.config.compose import load_config
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.partition import ensure_store
from llcg_dist.records.console import print_error, say

METHODS = ("llcg", "llcg_plus", "psgd_pa", "ggs", "full_sync")
RATES = (100, 1000)
MACHINES = 4
SHARE = 0.95
"""The target: this share of the best validation score of `single`."""
ROUNDS = 10
FIGURE = Path("..") / "figures" / "slow_network.png"

# Reddit's width of features, classes and split; the paper's model for it (SBSBS, hidden 256) and its fan-out. The same
# for every method, BatchNorm statistics included.
SETTINGS = [
    "dataset.nodes=20000", "dataset.features=602", "dataset.classes=41", "dataset.degree=30", "dataset.homophily=0.6",
    "dataset.signal=0.1", "dataset.train_fraction=0.66", "dataset.val_fraction=0.1", "model.layers=3",
    "model.hidden=256", "sampling.fanout=10", "sampling.server_fanout=10", "algorithm.K=16", f"num_rounds={ROUNDS}",
    "algorithm.batchnorm_stats=recalibrate", "train.local_batch_size=16", "train.server_batch_size=256",
    "train.local_lr=0.01", "train.server_lr=0.01", f"cluster.num_machines={MACHINES}", "logger=none",
]  # fmt: skip

_SETTING = """\
A server and four machines, each a host of its own (a network namespace) behind a link with a `tbf` limit both ways; a
plain transfer between two of them, there and back, measured {measured} Mbit/s. A generated graph of Reddit's
width and classes ({graph.nodes:,} nodes, {graph.features} features, {graph.classes} classes, degree {graph.degree:g},
METIS); the paper's model for it (SBSBS, hidden {model.hidden}) and fan-out; batches of {train.local_batch_size} and
{train.server_batch_size}, K = {K:g}, learning rates {train.local_lr:g} and {train.server_lr:g}, BatchNorm statistics
recomputed: the same for every method. Graph and batches were chosen in trial runs without a network, so that `single`
learns within minutes; batches of 16, where the paper has 256, also keep computing small beside what crosses: with
larger ones on two shared cores the ratios would be lower. The target, {target:.1f} % validation accuracy, is
{share:.0f} % of the best of `single` and was
written down before the others ran. A run ends when it reaches the target; one that was stopped before counts with the
seconds that it had trained. One seed: another may need a round more or less."""

_READING = """\
Seconds are those of the rounds, from the first broadcast to the model that reached the target. Every round is evaluated
beside the next one's local steps, and a round waits for it where it takes longer, as with llcg and psgd_pa here;
full_sync hides it behind its first step alone. The five processes share two cores, so that computing takes up to two
and a half times as long as on hosts of their own: both weigh on methods that mostly compute, and hardly on those that
wait for the network."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=int, nargs="+", choices=RATES, default=RATES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--out", type=Path, default=Path("runs/slow_network"))
    parser.add_argument("--limit", type=float, default=600, help="seconds of training until a run is given up")
    parser.add_argument("--piece", type=float, default=float("inf"), help="seconds until this call stops")
    arguments = parser.parse_args()
    if not shutil.which("tc"):
        print_error("bench.slow_network: network namespaces with limited links need root and iproute2 (ip, tc)")
        return 2
    try:
        bench = Bench(arguments.out.resolve(), arguments.limit, time.monotonic() + arguments.piece)
        for rate in arguments.rates:
            bench.train(rate, arguments.methods)
    except pytest.skip.Exception as missing:  # as the tests say it
        print_error(f"bench.slow_network: {missing.msg}")
        return 2
    bench.report()
    return 0


class Bench:
    def __init__(self, out: Path, limit: float, end: float) -> None:
        self._out, self._limit, self._end = out, limit, end
        self._settings = [*SETTINGS, f"partition.root={out}/parts"]
        with hosts(1):  # fails before an hour's work where it cannot be done
            pass
        self._target = self._fixed_target()

    def _fixed_target(self) -> float:
        """The validation score to reach, from a run of `single`; written down before any other method has begun."""
        path = self._out / "target.json"
        if not path.exists():
            ended = llcg("train", *self._settings, "algorithm=single", f"run_dir={self._out}/single")
            if ended.code:
                raise SystemExit(ended.err)
            best = max(row["val_score"] for row in read_rows(self._out / "single"))
            write_json(path, {"single": best, "target": SHARE * best})
        return float(json.loads(path.read_text())["target"])

    def train(self, rate: int, methods: list[str]) -> None:
        """Trains the methods that have no finished run at this rate, as far as the time allows."""
        wanted = [method for method in methods if not self._is_over(rate, method)]
        if wanted and self._has_time():
            ensure_store(load_config([*self._settings, "algorithm=ggs"]), access=DataAccess.FULL_TOPOLOGY)
            with hosts(1 + MACHINES) as found:
                self._limit_links(found, rate)
                for method in wanted:
                    if self._has_time():
                        self._run(found, rate, method)

    def _limit_links(self, found: list[Host], rate: int) -> None:
        for host in found:
            host.limit(rate)
        num_bytes = rate * 1_000_000 // 8 * 2  # two seconds
        both_ways = [megabits_per_second(found[a], found[b], num_bytes) for a, b in ((0, 1), (1, 0))]
        say(f"{rate} Mbit/s: a transfer took place at {both_ways[0]:.1f} Mbit/s, back at {both_ways[1]:.1f}")
        (self._out / f"{rate}").mkdir(parents=True, exist_ok=True)
        write_json(self._out / f"{rate}" / "link.json", {"both_ways": both_ways})

    def _run(self, found: list[Host], rate: int, method: str) -> None:
        """Starts or resumes a run, until it reaches the target, its limit, or the end of this call's time."""
        where = [f"run_dir={self._folder(rate, method)}", f"algorithm={method}"]
        jobs = [multinode(host, found[0], len(found), 1, *self._settings, *where) for host in found]
        try:
            while any(job.poll() is None for job in jobs) and not self._is_over(rate, method) and self._has_time():
                time.sleep(0.3)
                if any(job.poll() for job in jobs):
                    raise SystemExit(f"{method} failed: {[printed(job)[1] for job in jobs]}")
        finally:
            for job in jobs:
                job.send_signal(signal.SIGTERM)
            with ExitStack() as stack:  # one that does not end keeps no other from being ended
                for job in jobs:
                    stack.callback(finish, job, limit=60)
        say(f"{rate} Mbit/s, {method}: {self._outcome(rate, method)}")

    def _has_time(self) -> bool:
        return time.monotonic() < self._end

    def _folder(self, rate: int, method: str) -> Path:
        return self._out / f"{rate}" / method

    def _outcome(self, rate: int, method: str) -> Outcome:
        return Outcome.of(read_rows(self._folder(rate, method)), self._target)

    def _is_over(self, rate: int, method: str) -> bool:
        found = self._outcome(rate, method)
        return found.reached or found.seconds >= self._limit or found.rounds >= ROUNDS

    def report(self) -> None:
        """Publishes the rates at which every method was measured; the slowest must be among them."""
        rates = [rate for rate in RATES if all(self._is_over(rate, method) for method in METHODS)]
        if rates != list(RATES):
            say("not all of it is measured yet; the same command goes on")
        if min(RATES) not in rates:
            return
        curves = {rate: {method: read_rows(self._folder(rate, method)) for method in METHODS} for rate in rates}
        outcomes = {rate: {method: self._outcome(rate, method) for method in METHODS} for rate in rates}
        links = {rate: json.loads((self._out / f"{rate}" / "link.json").read_text()) for rate in rates}
        draw(curves, self._target, PAGE.parent / FIGURE)
        text = f"{self._setting(links)}\n\n![validation score by time]({FIGURE})\n\n{markdown(outcomes)}\n\n{_READING}"
        figures = {f"{rate}/{method}": asdict(of) for rate, each in outcomes.items() for method, of in each.items()}
        publish("slow_network", text, claims(outcomes, min(rates)), figures | {"target": self._target, "links": links})

    def _setting(self, links: dict[int, dict[str, list[float]]]) -> str:
        config = load_config(self._settings)
        measured = "; ".join(" and ".join(f"{rate:.1f}" for rate in link["both_ways"]) for link in links.values())
        chosen = {"graph": config.dataset, "model": config.model, "train": config.train, "K": config.algorithm.K}
        return _SETTING.format(target=100 * self._target, share=100 * SHARE, measured=measured, **chosen)


def read_rows(folder: Path) -> Rows:
    """The complete lines of metrics.jsonl; a run that is under way may be in the middle of one."""
    path = folder / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that hosts and processes are cleared away then too
    raise SystemExit(main())

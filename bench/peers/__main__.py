"""Seconds to the same score with the peers' own programs and with ours, on hosts behind slow links:

    python -m bench.peers [--rates 100 1000] [--programs llcg distdgl] [--repeats 3] [--limit 100] [--out runs/peers]

Graph, links and target are those of bench/slow_network.py: four machines (and a server, if a program has one), each a
network namespace behind a link of so many Mbit/s. The peers are their registry packages: DistDGL beside our torch,
Flower in an environment of its own that the bench makes, PyG under torch's DDP. A peer first runs with our batch and
learning rate and with those of its own example; the better of the two is repeated and counts. Seconds are those of
training: every clock stands still while a model is scored, but ours, which scores beside its rounds. A run that is not
there after `--limit` seconds is given up. Needs root and iproute2. Finished runs stay in `--out`.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from tests.helpers.jobs import Job, finish, llcg, printed
from tests.helpers.netns import Host, hosts

from bench.harness import publish
from bench.peers.common import Settings
from bench.peers.memory import PeakMemory
from bench.peers.programs import OURS, PEERS, start_ours, start_peer
from bench.peers.tables import KINDS, THEIRS, Result, better_settings, claims, markdown
from bench.slow_network import MACHINES, RATES, SETTINGS, SHARE, read_rows
from bench.time_to_target import until
from llcg_dist.config.compose import load_config
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.partition import ensure_store
from llcg_dist.records.console import say

_TINY = ["dataset.nodes=1500", "dataset.features=16", "dataset.classes=4", "model.hidden=16", "num_rounds=4"]


class Bench:
    def __init__(self, out: Path, limit: float, tiny: bool) -> None:
        self._out, self._limit = out, limit
        self._overrides = [*SETTINGS, *(_TINY if tiny else []), f"partition.root={out}/parts"]
        self._config = load_config(self._overrides)
        self._store, _ = ensure_store(load_config([*self._overrides, "algorithm=ggs"]), access=DataAccess.FULL_TOPOLOGY)
        self._target = self._fixed_target()

    def _fixed_target(self) -> float:
        path = self._out / "target.json"
        if not path.exists():
            ended = llcg("train", *self._overrides, "algorithm=single", f"run_dir={self._out}/single")
            if ended.code:
                raise SystemExit(ended.err)
            best = max(row["val_score"] for row in read_rows(self._out / "single"))
            write_json(path, {"single": best, "target": SHARE * best})
        return float(json.loads(path.read_text())["target"])

    def measure(self, rate: int, repeat: int, name: str, kind: str) -> None:
        """One run, unless it is there already."""
        folder = self._out / f"{rate}" / f"{repeat}" / f"{name}-{kind}"
        if (folder / "result.json").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        has_server = name in OURS or PEERS[name].has_server
        with hosts(MACHINES + has_server) as found:
            for host in found:
                host.limit(rate)
            before, memory = [host.sent_bytes() for host in found], PeakMemory(found)
            if name in OURS:
                jobs = start_ours(name, found, folder, [*self._overrides, f"seed={repeat}"])
            else:
                jobs = start_peer(name, found, self._settings(folder, found, repeat), kind == THEIRS)
            self._follow(name, jobs, folder, memory)
            sent = sum(host.sent_bytes() for host in found) - sum(before)
        rows = until(read_rows(folder), self._target)
        best, seconds = max(row["val_score"] for row in rows), sum(row["seconds_round"] for row in rows)
        result = Result(rate, repeat, name, kind, best >= self._target, seconds, best, sent / 1e6, max(memory.peaks))
        write_json(folder / "result.json", asdict(result))
        say(str(result))

    def results(self) -> list[Result]:
        return [Result(**json.loads(path.read_text())) for path in sorted(self._out.glob("*/*/*/result.json"))]

    def _settings(self, folder: Path, found: Sequence[Host], seed: int) -> Settings:
        config, head = self._config, found[0].address
        steps, model = int(config.algorithm.K), config.model
        return Settings(
            str(self._store), str(folder), head, MACHINES, self._target, self._limit, steps, config.train.local_lr,
            config.train.local_batch_size, 10, model.hidden, model.layers, seed,
        )  # fmt: skip

    def _follow(self, name: str, jobs: Sequence[Job], folder: Path, memory: PeakMemory) -> None:
        """Until it has reached the target, spent its time or ended by itself; one that fails ends the bench."""
        end = time.monotonic() + 2 * self._limit + 120
        try:
            while any(job.poll() is None for job in jobs) and not self._is_over(folder):
                memory.look()
                time.sleep(1.0)  # looking at memory takes time itself
                failed = [printed(job)[1][-2000:] for job in jobs if job.poll()]
                if (failed and not self._is_over(folder)) or time.monotonic() > end:
                    raise SystemExit(f"{name} failed: {failed}")
        finally:
            with ExitStack() as stack:
                for job in jobs:
                    job.send_signal(signal.SIGTERM)
                    stack.callback(finish, job, limit=60)

    def _is_over(self, folder: Path) -> bool:
        rows = read_rows(folder)
        spent = sum(row["seconds_round"] for row in rows)
        return spent >= self._limit or any(row["val_score"] >= self._target for row in rows)

    def report(self, tiny: bool) -> None:
        results = self.results()
        text = f"Target: {100 * self._target:.1f} % validation accuracy.\n\n{markdown(results)}"
        if tiny:
            say(text)
        else:
            publish("peers", text, claims(results), {"target": self._target, "runs": [asdict(r) for r in results]})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", type=int, nargs="+", default=list(RATES))
    parser.add_argument("--programs", nargs="+", choices=[*OURS, *PEERS], default=[*OURS, *PEERS])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--limit", type=float, default=100, help="seconds of training until a run is given up")
    parser.add_argument("--tiny", action="store_true", help="a graph of seconds, to see that everything starts")
    arguments = parser.parse_args()
    bench = Bench(arguments.out.resolve(), arguments.limit, arguments.tiny)
    for repeat in range(arguments.repeats):
        for rate in arguments.rates:
            for name in arguments.programs:
                for kind in better_settings(bench.results(), rate, name) if repeat else KINDS[name in PEERS]:
                    bench.measure(rate, repeat, name, kind)
    bench.report(arguments.tiny)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that hosts and processes are cleared away then too
    raise SystemExit(main())

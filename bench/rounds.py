"""Does anyone wait in a round? Real jobs, interleaved:

    python -m bench.rounds [--repeats 3]

- Evaluation is hidden: one machine with evaluate.every=1 against the same with evaluate.every=0.
- Machines do not wait for each other: two machines against one, steps per second over all of them.
- The correction's batches are drawn while the server waits: what its steps would take with the drawing.
- What a second thread that draws a machine's next batch would gain, on a core of its own (bench/sampling_ahead.py).
"""

import argparse
import tempfile
from pathlib import Path

from bench.harness import Claim, Spread, publish, ratio, table
from bench.jobs import Job, cut, train
from bench.sampling_ahead import measure as measure_sampling_ahead

SETTINGS = [
    "dataset.nodes=50000", "dataset.features=128", "model.hidden=256", "train.local_batch_size=256", "algorithm.K=24",
    "num_rounds=7", "logger=none", "algorithm.rho=1",
]  # fmt: skip

PLAIN = ["algorithm=psgd_pa"]
CONTENDERS = {
    "1 machine": [*PLAIN, "cluster.num_machines=1", "evaluate.every=0"],
    "1 machine, evaluated": [*PLAIN, "cluster.num_machines=1"],
    "2 machines": [*PLAIN, "cluster.num_machines=2", "evaluate.every=0"],
    "llcg, 1 machine": ["algorithm=llcg", "cluster.num_machines=1", "algorithm.S=2"],
}
ONCE = {"llcg, 8 machines": ["algorithm=llcg", "cluster.num_machines=8", "algorithm.S=2", "algorithm.K=4"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        base = [*SETTINGS, f"partition.root={folder}/parts"]
        for machines in (1, 2, 8):
            cut([*base, f"cluster.num_machines={machines}"])
        jobs: dict[str, list[Job]] = {name: [] for name in [*CONTENDERS, *ONCE]}
        for repeat in range(repeats):
            for name, settings in (CONTENDERS if repeat else CONTENDERS | ONCE).items():
                run_dir = Path(folder, f"{list(jobs).index(name)}-{repeat}")
                jobs[name].append(train(run_dir, [*base, *settings]))
        report(jobs)


def report(jobs: dict[str, list[Job]]) -> None:
    def rounds(name: str) -> list[float]:
        return [job.seconds_per_round() for job in jobs[name]]

    one, evaluated, two = (rounds(name) for name in ("1 machine", "1 machine, evaluated", "2 machines"))
    seconds, same_bits = measure_sampling_ahead(SETTINGS, repeats=5)
    threaded, drawing = ratio(seconds["ahead"], seconds["in turn"]), ratio(seconds["draw"], seconds["in turn"])
    corrected = jobs["llcg, 1 machine"]
    ahead = [job.column("seconds_correct") for job in corrected]
    later = [job.column("seconds_correct") + job.column("seconds_prepare") for job in corrected]
    claims = [
        Claim("a round of 1 machine with evaluation, against without", ratio(evaluated, one), at_most=1.1),
        Claim("steps per second of 2 machines, against 1", ratio([2 * t for t in one], two), at_least=1.7),
        Claim("correction with its batches drawn while waiting, against drawn when needed", ratio(ahead, later)),
        Claim("a local step with the next batch drawn by a second thread, against in turn", threaded),
    ]
    head = ["job", "ms a round", "local", "evaluate", "draw ahead", "correct", "machine idle", "server idle"]
    text = table(head, [[name, *_row(of)] for name, of in jobs.items()])
    note = (
        "Milliseconds by the clock, medians over the rounds of all repeats; a machine is idle when it takes no local "
        "step, the server when it neither evaluates nor draws nor corrects. Eight machines share the two cores with it."
    )
    assert same_bits, "batches drawn ahead are not those drawn in turn"
    left_out = (
        f"Drawing takes {drawing.median:.0%} of a local step. A second thread that draws a machine's next batch, on a "
        "core that nobody else uses (sampling.prefetch), has the same bits; what it gains is the last line."
    )
    publish("rounds", f"{text}\n\n{note}\n\n{left_out}", claims, {name: rounds(name) for name in jobs})


def _row(jobs: list[Job]) -> list[str]:
    def middle(values: list[float]) -> float:
        return Spread.of(values).median

    clock = middle([job.seconds_per_round() for job in jobs])
    phases = ("seconds_local", "seconds_evaluate", "seconds_prepare", "seconds_correct")
    local, evaluate, prepare, correct = (middle([job.column(phase) for job in jobs]) for phase in phases)
    idle = [1 - local / clock, 1 - (evaluate + prepare + correct) / clock]
    seconds = [clock, local, evaluate, prepare, correct]
    return [*(f"{1e3 * value:.0f}" for value in seconds), *(f"{max(0.0, share):.0%}" for share in idle)]


if __name__ == "__main__":
    main()

"""Do two versions of the code compute the same? Run before and after every step of a refactoring:

    python -m tests.golden.compare BASE [--keep FOLDER] [--only NAME ...]

BASE is a commit. Its files are taken from git; the other side is the working tree. Every job of jobs.py is run with
both, and these must be equal to the last digit: model.pt and best.pt, the rows of metrics.jsonl without seconds, the
bytes of parameters, features and gradients in wire.json. Control bytes may differ by 4 KiB per machine and round.
--keep FOLDER keeps the results of BASE, so that the next comparison runs the working tree alone.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.golden.jobs import JOBS, MACHINES, Job

REPOSITORY = Path(__file__).parents[2]
CONTROL_BYTES_ALLOWED = 4096
LIMIT_SECONDS = 300
_TIMES = ("seconds", "cpu_", "timeline")
_NOT_COMPARED = ("control_bytes", "checkpoint_bytes", "checkpoint_round")  # how states are named, when a disk answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="commit to compare with")
    parser.add_argument("--keep", type=Path, help="folder that keeps the results of BASE")
    parser.add_argument("--only", nargs="*", help="names of jobs")
    options = parser.parse_args()
    jobs = [job for job in JOBS if not options.only or job.name in options.only]
    commit = subprocess.check_output(["git", "rev-parse", options.base], cwd=REPOSITORY, text=True).strip()
    with tempfile.TemporaryDirectory() as scratch:
        kept = (options.keep or Path(scratch)) / commit[:12]
        before = {job.name: results_of_commit(commit, job, kept, Path(scratch)) for job in jobs}
        package = importable(REPOSITORY, Path(scratch) / "now")
        differing = 0
        for job in jobs:
            found = differences(before[job.name], results(job, package, Path(scratch) / "runs"))
            differing += bool(found)
            print(f"{job.name}: {'; '.join(found[:3]) or 'equal'}", flush=True)
    print(f"{len(jobs) - differing} of {len(jobs)} jobs equal to {commit[:12]}")
    return 1 if differing else 0


def results_of_commit(commit: str, job: Job, kept: Path, scratch: Path) -> dict[str, Any]:
    file = kept / f"{job.name}.json"
    if not file.exists():
        checkout = scratch / "base"
        if not checkout.exists():
            checkout.mkdir()
            archive = subprocess.Popen(["git", "archive", commit], cwd=REPOSITORY, stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "-C", str(checkout)], stdin=archive.stdout, check=True)
            importable(checkout, scratch / "base-package")
        kept.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(results(job, scratch / "base-package", scratch / "base-runs")))
    return json.loads(file.read_text())


def importable(checkout: Path, target: Path) -> Path:
    """A folder to import this checkout from, with conf/ in the package as in an installed one."""
    package = target / "llcg_dist"
    package.mkdir(parents=True)
    for path in (checkout / "src" / "llcg_dist").iterdir():
        (package / path.name).symlink_to(path)
    (package / "conf").symlink_to(checkout / "conf")
    return target


def results(job: Job, package: Path, folder: Path) -> dict[str, Any]:
    """What is compared of one run of the job."""
    run_dir = folder / job.name
    places = [f"run_dir={run_dir}", f"partition.root={folder / 'parts'}"]
    if job.shorter:
        train([*job.command, *job.shorter, *places], package)
    if job.kill_after:
        train_and_kill([*job.command, *places], package, run_dir, job.kill_after)
    train([*job.command, *places], package)
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    wire = json.loads((run_dir / "wire.json").read_text())
    messages = [row for row in wire["messages"] if row["kind"] != "control"]
    hashes = {name: sha256(run_dir / name) for name in ("model.pt", "best.pt")}
    return {
        "models": hashes,
        "rows": [{key: value for key, value in row.items() if not any(map(key.__contains__, _TIMES))} for row in rows],
        "messages": sorted(messages, key=json.dumps),
        "halo_bytes": wire["halo_bytes"],
    }


def train(overrides: list[str], package: Path) -> None:
    process = start(overrides, package)
    printed = process.communicate(timeout=LIMIT_SECONDS)[0]
    if process.returncode:
        sys.exit(f"llcg train {' '.join(overrides)}\n{printed}")


def train_and_kill(overrides: list[str], package: Path, run_dir: Path, rounds: int) -> None:
    process = start(overrides, package)
    metrics, end = run_dir / "metrics.jsonl", time.monotonic() + LIMIT_SECONDS
    while not metrics.exists() or metrics.read_text().count("\n") < rounds:
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"the job ended, or took too long, before it could be killed: {overrides}")
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(2)  # ranks end with their launcher, in sessions of their own


def start(overrides: list[str], package: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "llcg_dist.cli.main", "train", *overrides]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, env=environment, cwd=package, stdout=pipe, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """A line for each thing that is not equal."""
    now = json.loads(json.dumps(now))
    found = [key for key in ("models", "messages", "halo_bytes") if before[key] != now[key]]
    for old, new in zip(before["rows"], now["rows"], strict=False):
        keys = [key for key in old | new if old.get(key) != new.get(key) and key not in _NOT_COMPARED]
        found += [f"round {old['round']}: {key} {old.get(key)} -> {new.get(key)}" for key in keys]
        if abs(old["control_bytes"] - new["control_bytes"]) > CONTROL_BYTES_ALLOWED * MACHINES:
            found.append(f"round {old['round']}: control bytes {old['control_bytes']} -> {new['control_bytes']}")
    if len(before["rows"]) != len(now["rows"]):
        found.append(f"{len(before['rows'])} rows -> {len(now['rows'])}")
    return found


if __name__ == "__main__":
    sys.exit(main())

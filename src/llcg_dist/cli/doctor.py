"""`llcg doctor [overrides]`: checks a job before it starts, and prints the findings. Exit code 2 if it cannot work.

`llcg doctor --stages` predicts what every stage will take, `llcg doctor --gpu` compares every GPU of this host with its
CPU.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.cli.partition import print_parts
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.host_memory import memory
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import parts_on_disk, read_manifest, read_shard
from llcg_dist.doctor import ERROR, OK, WARN, Finding, check_parts_and_memory, num_processes
from llcg_dist.doctor.findings import format_bytes
from llcg_dist.doctor.forecast import HEADER, LARGE_ENTRIES, Forecast, existing_folder, forecast
from llcg_dist.doctor.host import Host, num_gpus, read_ahead, this_host
from llcg_dist.doctor.host_rules import check_host, check_precision, check_processes
from llcg_dist.doctor.privacy_rules import check_privacy
from llcg_dist.doctor.sizes import size_of
from llcg_dist.doctor.stage_rules import check_stages
from llcg_dist.errors import UserError
from llcg_dist.records.console import print_error, say, table

_ANSI_COLOURS = {OK: "32", WARN: "33", ERROR: "31"}
_RANKS_HERE = "--ranks-here="
_GPU = "--gpu"
_STAGES, _JSON = "--stages", "--json"


def doctor(arguments: Sequence[str]) -> int:
    """Prints the findings on host, parts and memory, and the predicted traffic; returns the exit code."""
    start = time.process_time()
    if _GPU in arguments:
        return _compare_gpus(arguments)
    if _STAGES in arguments:
        return _predict_stages(arguments, start)
    config = load_config([argument for argument in arguments if not argument.startswith("--")])
    algorithm = build_algorithm(config)
    algorithm.local_steps()
    ranks = num_processes(config, algorithm)
    ranks_here = _ranks_here(arguments, ranks)
    host = this_host(config.cluster.interface)
    _predict_large(config, algorithm, host, start)
    findings = [
        *check_processes(os.environ.get("WORLD_SIZE"), ranks),
        *check_host(host, config.cluster, ranks_here),
        *check_precision(host, config),
        *check_privacy(config),
        *_check_store(config, algorithm, host, ranks_here),
    ]
    _print_findings(findings)
    errors = sum(finding.level == ERROR for finding in findings)
    if errors:
        print_error(f"{errors} finding(s) above keep this job from working")
        return 2
    if algorithm.trains_on_parts and (store_path(config) / "global").exists():
        _print_traffic(config)
    return 0


def _compare_gpus(arguments: Sequence[str]) -> int:
    """Takes one step of every model on each GPU, and prints how far it is from the CPU's; 1: too far."""
    if len(arguments) > 1:
        raise UserError(f"{_GPU}: takes no other argument; it looks at every GPU of this host")
    if num_gpus() == 0:
        import torch

        raise UserError(f"{_GPU}: torch {torch.__version__} sees no GPU here; nothing was compared")
    from llcg_dist.doctor.gpu import AGREES, compare  # the models take seconds to import

    rows = [row for number in range(num_gpus()) for row in compare(f"cuda:{number}")]
    cells = [[row.device, row.model, f"{row.step:.1e}", f"{row.logits:.1e}"] for row in rows]
    say(table(["device", "model", "step", "logits"], cells))
    wrong = [f"{row.model} on {row.device}" for row in rows if not row.agrees]
    if wrong:
        print_error(f"further from the CPU than {AGREES:g}: {', '.join(wrong)}")
        return 1
    say(f"{num_gpus()} GPU(s) agree with the CPU: no step and no logits differ by more than {AGREES:g}")
    return 0


def _predict_stages(arguments: Sequence[str], start: float) -> int:
    """Prints what every stage that is still to come will take, and builds nothing; as JSON with --json."""
    options = {argument for argument in arguments if argument.startswith("--")}
    if unknown := options - {_STAGES, _JSON}:
        raise UserError(f"{min(unknown)}: {_STAGES} takes no other option than {_JSON}")
    config = load_config([argument for argument in arguments if not argument.startswith("--")])
    algorithm = build_algorithm(config)
    algorithm.local_steps()
    path = store_path(config) / "manifest.json"
    size = size_of(config, read_manifest(path.parent) if path.exists() else None)
    if size is None:
        what = f"dataset={config.dataset.source}: how large this graph is shows only when it is loaded"
        raise UserError(f"{_STAGES}: {what}; build the parts with `llcg partition` first")
    found = forecast(algorithm, size, this_host(config.cluster.interface), start, path.exists())
    if _JSON in options:
        say(json.dumps(found.as_json()))
        return 0
    _print_stages(config, found)
    return 0


def _predict_large(config: Config, algorithm: Algorithm, host: Host, start: float) -> None:
    """Predicts and prints the stages of a large graph that has no parts yet: what comes next takes minutes."""
    size = None if store_path(config).exists() else size_of(config)
    if size is not None and size.entries >= LARGE_ENTRIES:
        _print_stages(config, forecast(algorithm, size, host, start, has_store=False))


def _print_stages(config: Config, found: Forecast) -> None:
    size = found.size
    say(f"stages of {size.nodes:,} nodes, {size.edges:,} edges, {size.features} features, on this host when it is idle")
    say(table(HEADER, found.rows()))
    folder = existing_folder(Path(config.partition.root))
    free_disk = shutil.disk_usage(folder).free
    _print_findings(check_stages(config, found, memory()[1], free_disk, read_ahead(folder)))


def _ranks_here(arguments: Sequence[str], ranks: int) -> int:
    """The value of --ranks-here, all ranks by default; any other option is a UserError."""
    ranks_here = ranks
    for option in (argument for argument in arguments if argument.startswith("--")):
        value = option.removeprefix(_RANKS_HERE)
        if not option.startswith(_RANKS_HERE) or not value.isdecimal() or not 1 <= int(value) <= ranks:
            rule = f"--gpu, --stages [--json], or --ranks-here=N with N from 1 to the job's {ranks} rank(s)"
            raise UserError(f"{option}: the options are {rule}")
        ranks_here = int(value)
    return ranks_here


def _check_store(config: Config, algorithm: Algorithm, host: Host, ranks_here: int) -> list[Finding]:
    """Builds the parts where they are missing, prints them, and checks them and the memory that they need.

    A host that holds a share of the parts without the manifest can be checked no further.
    """
    path = store_path(config)
    parts = parts_on_disk(path)
    if parts and not (path / "manifest.json").exists():
        only_parts = f"{path} holds part(s) {', '.join(map(str, parts))} alone"
        return [Finding(OK, "parts", only_parts, "machines can run here, rank 0 cannot: examine the rest on its host")]
    try:
        store, manifest = ensure_store(config, say, algorithm.data_access)
        print_parts(manifest)
        return check_parts_and_memory(config, algorithm, store, manifest, host, ranks_here)
    except UserError as error:
        return [Finding(ERROR, "parts", str(error))]


def _print_findings(findings: Sequence[Finding]) -> None:
    for group in dict.fromkeys(finding.group for finding in findings):
        say(f"\n{group}")
        for finding in (finding for finding in findings if finding.group == group):
            say(f"  {_coloured(finding.level)} {finding.what}")
            if finding.advice:
                say(f"        {finding.advice}")


def _coloured(level: str) -> str:
    word = level.ljust(5)
    return f"\x1b[{_ANSI_COLOURS[level]}m{word}\x1b[0m" if sys.stdout.isatty() else word


def _print_traffic(config: Config) -> None:
    """Prints the bytes that every method would send per round."""
    from llcg_dist.doctor.traffic import predict_traffic  # the sampler and the models take seconds to import

    full_graph = read_shard(store_path(config) / "global")
    rows, remote = predict_traffic(config, full_graph.graph, full_graph.extra["assignment"])
    say("\ntraffic: bytes a round, all machines together")
    cells = [
        [method, *(format_bytes(b) for b in (row.up, row.down, row.gradients, row.features, row.total))]
        for method, row in rows.items()
    ]
    say(table(["method", "up", "down", "gradients", "features", "total"], cells))
    say(
        f"features are an estimate from {remote.batches} sampled batches: a step reads {remote.per_step:,.0f} rows of "
        "other parts; subgraph_approx also stores a halo once, before the first round"
    )

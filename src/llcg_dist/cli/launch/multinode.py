"""Starts this host's ranks of a job on several hosts; called by launch/multinode.sh."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llcg_dist.cli.exit_codes import exit_code_of
from llcg_dist.cli.launch.torch_logging import silence_torch_store
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError

_DEFAULT_PORT = 29500

_DESCRIPTION = """\
Run once on every host, with the same arguments but for --here (and settings that say where files lie):

  launch/multinode.sh --head 10.0.0.1 --hosts 3 --here 2 cluster.num_machines=4 run_dir=/shared/runs/a \\
      cluster.key_file=job.key [settings]

starts two of the job's five processes here. Hosts may be started in any order, within cluster.join_timeout. The host
whose partition.root holds the whole graph runs the server; machines take the parts that their disks hold. Settings are
those of `llcg train`; run_dir and cluster.key_file (from `llcg key`, the same on every host) must be among them."""


def main(arguments: Sequence[str]) -> int:
    """Parses the options, joins the job, runs this host's ranks; returns the exit code."""
    return exit_code_of(lambda: _launch(arguments))


def _launch(arguments: Sequence[str]) -> int:
    options, overrides = _parser().parse_known_args(arguments)
    unknown = [override for override in overrides if override.startswith("-")]
    if unknown:
        raise UserError(f"{unknown[0]}: no such option; --help lists them")
    head, port = _endpoint(options.head)
    if options.hosts < 1 or options.here < 1:
        raise UserError("--hosts and --here: must be at least 1")
    config = load_config(overrides)
    if not config.run_dir:
        raise UserError("run_dir: must be set for a job on several hosts, so that each start of it finds its records")
    if config.cluster.sealed and not config.cluster.key_file:
        rule = "`llcg key job.key` makes one: copy it to every host and add cluster.key_file=job.key"
        raise UserError(f"cluster.key_file: a job on several hosts needs a key; {rule} (or cluster.sealed=false)")
    silence_torch_store()
    from llcg_dist.cli.launch.elastic import launch
    from llcg_dist.cli.launch.hosts import Hosts

    hosts = Hosts(options.hosts, head, port, options.job, config.cluster.join_timeout, 1 + options.rejoin)
    return launch(options.here, config.cluster, Path(config.run_dir), overrides, hosts)


def _parser() -> argparse.ArgumentParser:
    def variable(name: str, default: object = None) -> dict[str, Any]:
        """The default of an option, from an environment variable; without either the option is required."""
        value = os.environ.get(name, default)
        return {"default": value, "required": value is None}

    parser = argparse.ArgumentParser(
        prog="launch/multinode.sh",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage="%(prog)s --head ADDRESS[:PORT] --hosts N [--here M] [--job NAME] [--rejoin R] [settings]",
    )
    add = parser.add_argument
    add("--head", **variable("LLCG_HEAD"), help=f"where all hosts meet; port {_DEFAULT_PORT} if none (LLCG_HEAD)")
    add("--hosts", type=int, **variable("LLCG_HOSTS"), help="number of hosts in the job (LLCG_HOSTS)")
    add("--here", type=int, **variable("LLCG_HERE", 1), help="processes on this host, 1 by default (LLCG_HERE)")
    add("--job", **variable("LLCG_JOB", "llcg"), help="a name that only hosts of the same job share (LLCG_JOB)")
    add("--rejoin", type=int, **variable("LLCG_REJOIN", 3), help="joins again so often after a cut link (LLCG_REJOIN)")
    return parser


def _endpoint(head: str) -> tuple[str, int]:
    """(address, port) of --head, which is ADDRESS, ADDRESS:PORT or [IPV6]:PORT."""
    address, separator, port = head.rpartition(":")
    if not separator or head.endswith("]") or head.count(":") > 1 and not head.startswith("["):
        address, port = head, str(_DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536 or not address:
        raise UserError(f"--head {head}: must be ADDRESS or ADDRESS:PORT")
    return address.strip("[]"), int(port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

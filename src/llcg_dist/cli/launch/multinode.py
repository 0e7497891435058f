"""`llcg multinode`: starts this host's ranks of a job on several hosts."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llcg_dist.cli.arguments import OneLineParser
from llcg_dist.cli.launch.torch_logging import silence_torch_store
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError

_DEFAULT_PORT = 29500


def multinode(arguments: Sequence[str]) -> int:
    """Parses the options, joins the job, runs this host's ranks; returns the exit code."""
    options, overrides = _parser().parse_known_args(arguments)
    unknown = [override for override in overrides if override.startswith("-")]
    if unknown:
        raise UserError(f"{unknown[0]}: no such option; llcg multinode --help lists them")
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
    from llcg_dist.data.partition import store_path
    from llcg_dist.data.store import parts_on_disk

    attempts, parts = 1 + options.rejoin, frozenset(parts_on_disk(store_path(config)))
    hosts = Hosts(options.hosts, head, port, options.job, config.cluster.join_timeout, attempts, parts=parts)
    return launch(options.here, config.cluster, Path(config.run_dir), overrides, hosts)


def _parser() -> OneLineParser:
    """The options of cli/usage.py; the default of each is an environment variable."""

    def variable(name: str, default: object = None) -> dict[str, Any]:
        """Without a variable and a default the option is required."""
        value = os.environ.get(name, default)
        return {"default": value, "required": value is None}

    parser = OneLineParser("llcg multinode")
    parser.add_argument("--head", **variable("LLCG_HEAD"))
    parser.add_argument("--hosts", type=int, **variable("LLCG_HOSTS"))
    parser.add_argument("--here", type=int, **variable("LLCG_HERE", 1))
    parser.add_argument("--job", **variable("LLCG_JOB", "llcg"))
    parser.add_argument("--rejoin", type=int, **variable("LLCG_REJOIN", 3))
    return parser


def _endpoint(head: str) -> tuple[str, int]:
    """(address, port) of --head, which is ADDRESS, ADDRESS:PORT or [IPV6]:PORT."""
    address, separator, port = head.rpartition(":")
    if not separator or head.endswith("]") or head.count(":") > 1 and not head.startswith("["):
        address, port = head, str(_DEFAULT_PORT)
    if not port.isdigit() or not 0 < int(port) < 65536 or not address:
        raise UserError(f"--head {head}: must be ADDRESS or ADDRESS:PORT")
    return address.strip("[]"), int(port)

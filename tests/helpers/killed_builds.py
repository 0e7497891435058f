"""Builds a store in children that are killed in one stage after the other, then once more, in a process of its own:

    python -m tests.helpers.killed_builds ROOT OVERRIDES…

Prints the number of kills, or what a kill has left that passes for a store.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data import array_writer, csr, external_csr, metis, partition, stream, whole_graph
from llcg_dist.data.partition import ensure_store

STAGES: dict[str, tuple[Any, str]] = {
    "edges distributed": (external_csr.ExternalCsr, "add"),
    "a bucket sorted": (external_csr, "columns_of_keys"),
    "edges sorted": (external_csr.ExternalCsr, "finish"),
    "an array written": (array_writer.ArrayWriter, "finish"),
    "rows written": (array_writer.ArrayWriter, "append"),
    "features narrowed": (partition, "with_features_of_type"),
    "the whole graph written": (partition, "write_shard"),
    "clusters merged": (stream, "_merged"),
    "clusters cut": (metis.Metis, "_run"),
    "a pass of restreaming": (stream, "_restream"),
    "the graph reordered": (whole_graph, "_reordered"),
    "cut edges counted": (partition, "cut_edge_counts"),
    "a part described": (partition, "_describe_part"),
    "the manifest written": (partition, "write_json"),
}
"""{what has just been done when the kill comes: where its function is found}"""
assert external_csr.columns_of_keys is csr.columns_of_keys


def main() -> None:
    config, root = load_config(sys.argv[2:]), Path(sys.argv[1])
    stream.KERNELS.load()  # once for all children
    for stage, (place, name) in STAGES.items():
        ended = _in_child(lambda: _kill_after(place, name), config)  # noqa: B023 - it is called at once
        if ended != -signal.SIGKILL:
            sys.exit(f"{stage}: ended with {ended}")
        if left := [path.name for path in root.iterdir() if not path.name.startswith(".")]:
            sys.exit(f"{stage}: left {left}")
    print(len(STAGES))  # noqa: T201


def _in_child(prepare: Callable[[], None], config: Config) -> int:
    child = os.fork()
    if child == 0:
        try:
            prepare()
            ensure_store(config)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _kill_after(place: Any, name: str) -> None:
    """This process is killed when the function has returned for the first time."""
    function = getattr(place, name)

    def dies(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, dies)


if __name__ == "__main__":
    main()

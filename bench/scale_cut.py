"""Cuts the graph of a store once more, by another method, to be watched: `python -m bench.scale_cut STORE METHOD P`.

Prints a line where cutting begins and one where it has ended, and last the number of cut edges.
"""

import sys
from pathlib import Path

from llcg_dist.config.partition import PartitionConfig, PartitionMethod
from llcg_dist.data.cut import cut_edge_counts
from llcg_dist.data.parts import assign_parts
from llcg_dist.data.store import read_shard
from llcg_dist.records.console import say


def main() -> None:
    store, method, num_parts = Path(sys.argv[1]), PartitionMethod(sys.argv[2]), int(sys.argv[3])
    graph = read_shard(store / "global").graph
    say("cutting")
    assignment = assign_parts(graph, num_parts, PartitionConfig(method), scratch=store.parent)
    say("counting")
    say(str(int(cut_edge_counts(graph, assignment, num_parts).sum()) // 2))


if __name__ == "__main__":
    main()

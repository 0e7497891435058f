"""A plain PyG model under torch's DistributedDataParallel: one process per part, the whole graph in each.

Every process draws batches of the training nodes of its part, with their neighbours in the whole graph; gradients are
averaged at every step.
"""

import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from bench.peers.common import Clock, Settings, step, validation_score, write_peak
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.views import GraphView


def main() -> None:
    settings, rank = Settings.read(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    where = f"tcp://{settings.head}:29511"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=settings.machines)
    graph = settings.graph()
    own = np.flatnonzero((settings.assignment() == rank) & (graph.split == TRAIN))
    batches = settings.batches(GraphView(graph, own), rank)
    plain = settings.model(graph)
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    dist.barrier()
    clock, over = Clock(settings), torch.zeros(1)
    while not over.item():
        for _ in range(settings.steps):
            step(model, optimizer, next(batches))
        if rank == 0:
            over[0] = clock.score(lambda: validation_score(plain, graph))
        dist.broadcast(over, 0)
        clock.start()
    write_peak(settings, f"trainer{rank}")
    dist.barrier()


if __name__ == "__main__":
    main()

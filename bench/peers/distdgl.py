"""DistDGL itself (dgl.distributed): on every host a server that holds one part's topology and features, and a trainer.

    python -m bench.peers.distdgl SETTINGS cut                 (writes the parts, once)
    python -m bench.peers.distdgl SETTINGS server|trainer RANK

Trainers sample over all parts and fetch features from the servers; gradients are averaged at every step by torch's
DistributedDataParallel. The model is DGL's SAGEConv with BatchNorm between the layers.
"""

import os
import sys
from pathlib import Path
from typing import Any

import dgl
import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from bench.peers.common import Clock, Settings, write_peak
from llcg_dist.data.graph import TRAIN, VAL, Graph

NAME = "peers"


class Sage(nn.Module):
    def __init__(self, settings: Settings, graph: Graph) -> None:
        super().__init__()
        widths = [graph.num_features, *[settings.hidden] * (settings.layers - 1), graph.num_classes]
        self.layers = nn.ModuleList(
            dgl.nn.SAGEConv(width, out, "mean") for width, out in zip(widths[:-1], widths[1:], strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    def forward(self, blocks: Any, x: Tensor) -> Tensor:
        for place, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, x)
            if place < len(self.norms):
                x = nn.functional.dropout(self.norms[place](x).relu(), 0.5, self.training)
        return x


def whole(graph: Graph) -> Any:
    made = dgl.graph(("csc", (graph.indptr, graph.indices, [])), num_nodes=graph.num_nodes)
    return made.formats(["csc", "coo", "csr"])


def cut(settings: Settings) -> None:
    graph = settings.graph()
    made = whole(graph)
    made.ndata["features"], made.ndata["labels"] = torch.from_numpy(graph.features), torch.from_numpy(graph.labels)
    made.ndata["train_mask"] = torch.from_numpy(graph.split == TRAIN)
    dgl.distributed.partition_graph(made, NAME, settings.machines, _folder(settings), part_method="metis")


def train(settings: Settings, rank: int) -> None:
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
    where = f"tcp://{settings.head}:29513"
    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=settings.machines)
    found = dgl.distributed.DistGraph(NAME, part_config=_config(settings))
    own = dgl.distributed.node_split(found.ndata["train_mask"], found.get_partition_book(), force_even=True)
    sampler = dgl.dataloading.NeighborSampler([settings.fanout] * settings.layers)
    loader = dgl.dataloading.DistNodeDataLoader(found, own, sampler, batch_size=settings.batch, shuffle=True)
    graph = settings.graph()  # rank 0 scores with it; the others read its sizes
    torch.manual_seed(settings.seed)
    plain = Sage(settings, graph)
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    batches = (batch for _ in iter(int, 1) for batch in loader)
    dist.barrier()
    clock, over = Clock(settings), torch.zeros(1)
    while not over.item():
        for _ in range(settings.steps):
            inputs, seeds, blocks = next(batches)
            loss = nn.functional.cross_entropy(
                model(blocks, found.ndata["features"][inputs]), found.ndata["labels"][seeds]
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if rank == 0:
            over[0] = clock.score(lambda: score(plain, graph))
        dist.broadcast(over, 0)
        clock.start()
    write_peak(settings, f"trainer{rank}")
    dist.barrier()


@torch.no_grad()
def score(model: Sage, graph: Graph) -> float:
    blocks = [whole(graph)] * len(model.layers)
    logits = model.eval()(blocks, torch.from_numpy(graph.features))
    nodes = torch.from_numpy(np.flatnonzero(graph.split == VAL))
    model.train()
    return float((logits[nodes].argmax(1) == torch.from_numpy(graph.labels)[nodes]).double().mean())


def _folder(settings: Settings) -> str:
    return str(Path(settings.store).with_name(f"{Path(settings.store).name}-distdgl"))


def is_cut(settings: Settings) -> bool:
    return Path(_config(settings)).exists()


def _config(settings: Settings) -> str:
    return f"{_folder(settings)}/{NAME}.json"


def environment(settings: Settings, role: str, rank: int, addresses: list[str]) -> dict[str, str]:
    """What DGL's own launcher sets. Addresses: of the hosts, one server each."""
    file = Path(settings.out) / "ip_config.txt"
    file.write_text("".join(f"{address} 30050\n" for address in addresses))
    common = {"DGL_IP_CONFIG": str(file), "DGL_CONF_PATH": _config(settings), "DGL_NUM_SERVER": "1"}
    counts = {"DGL_NUM_CLIENT": str(len(addresses)), "DGL_NUM_SAMPLER": "0", "DGL_GRAPH_FORMAT": "csc"}
    own = {"DGL_ROLE": "server" if role == "server" else "client", "DGL_DIST_MODE": "distributed"}
    return common | counts | own | ({"DGL_SERVER_ID": str(rank)} if role == "server" else {})


if __name__ == "__main__":
    torch.set_num_threads(1)
    given, role = Settings.read(sys.argv[1]), sys.argv[2]
    if role == "cut":
        cut(given)
    elif role == "server":
        dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])  # serves, and ends the process when the trainers have
    else:
        train(given, int(sys.argv[3]))

"""A graph from a function of your own: anything that returns a PyG Data (or Dataset, or a DGL graph).

llcg train dataset=own dataset.target=own_dataset.ring_of_cliques dataset.options.cliques=60
"""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected


def ring_of_cliques(cliques: int = 40, size: int = 12, classes: int = 4, seed: int = 0) -> Data:
    """Cliques in a ring; a clique has a class, and a node's features point weakly to it."""
    generator = torch.Generator().manual_seed(seed)
    nodes = torch.arange(cliques * size)
    clique = nodes // size
    inside = (clique[:, None] == clique[None, :]) & (nodes[:, None] != nodes[None, :])
    bridges = torch.stack([nodes[::size], (nodes[::size] + size) % len(nodes)])
    y = torch.randint(classes, (cliques,), generator=generator)[clique]
    x = 0.4 * torch.nn.functional.one_hot(y, classes) + torch.randn(len(nodes), classes, generator=generator)
    chance = torch.rand(len(nodes), generator=generator)
    return Data(
        x=x.float(),
        edge_index=to_undirected(torch.cat([inside.nonzero().T, bridges], dim=1)),
        y=y,
        train_mask=chance < 0.3,
        val_mask=(chance >= 0.3) & (chance < 0.5),
        test_mask=chance >= 0.5,
    )


if __name__ == "__main__":
    import llcg_dist

    run = llcg_dist.fit(ring_of_cliques(), machines=2, rounds=5)
    print(f"test score {run.summary['test_score_at_best_val']:.3f}")

"""A PyG Data object in memory, several machines, and the same model under two methods."""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph, homophily

import llcg_dist


def noisy_communities(nodes: int = 1500, classes: int = 5) -> Data:
    """A random graph in which most of the edges between classes were removed."""
    torch.manual_seed(0)
    y = torch.randint(classes, (nodes,))
    edges = erdos_renyi_graph(nodes, 0.02)
    edges = edges[:, (y[edges[0]] == y[edges[1]]) | (torch.rand(edges.shape[1]) < 0.15)]
    x = 0.8 * torch.nn.functional.one_hot(y, classes) + torch.randn(nodes, classes)
    split = torch.rand(nodes)
    masks = {"train_mask": split < 0.4, "val_mask": (split >= 0.4) & (split < 0.6), "test_mask": split >= 0.6}
    return Data(x=x, y=y, edge_index=edges, **masks)


if __name__ == "__main__":
    data = noisy_communities()
    print(f"{data.num_nodes} nodes, homophily {homophily(data.edge_index, data.y):.2f}")
    for method in ("psgd_pa", "llcg"):
        run = llcg_dist.fit(data, "gcn", algorithm=method, machines=3, rounds=8, overrides={"algorithm.K": 4})
        print(f"{method}: test score {run.summary['test_score_at_best_val']:.3f}, {run.summary['total_bytes']} bytes")
    print(run.predict(nodes=[0, 1, 2]).to_string(index=False))

"""A PyG module of your own, trained as it is. The command line finds it by its dotted path, `fit` by its class:

llcg train model=own model.target=own_model.Net model.options.heads=4
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv


class Net(nn.Module):
    """Two attention layers. llcg_dist calls it with in_channels, out_channels and model.options."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.first = GATv2Conv(in_channels, hidden, heads)
        self.norm = nn.BatchNorm1d(hidden * heads)
        self.second = GATv2Conv(hidden * heads, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = torch.relu(self.norm(self.first(x, edge_index)))
        return self.second(nn.functional.dropout(hidden, 0.3, self.training), edge_index)


if __name__ == "__main__":
    import llcg_dist

    # The dotted path and not the class: in this file its module is __main__, which other processes cannot import.
    settings = {"model.options.heads": 4}
    run = llcg_dist.fit(
        "dataset=synthetic dataset.nodes=2000", "own_model.Net", machines=2, rounds=5, overrides=settings
    )
    print(run.history[["round", "val_score", "test_score"]].to_string(index=False))
    print(f"{type(run.model()).__name__} with the best weights, test score {run.summary['test_score_at_best_val']:.3f}")

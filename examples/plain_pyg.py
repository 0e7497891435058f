"""Trained weights in plain PyG: they load into your own class, which does not need llcg_dist."""

import torch

import llcg_dist
from own_dataset import ring_of_cliques
from own_model import Net

if __name__ == "__main__":
    data = ring_of_cliques()
    run = llcg_dist.fit(data, Net, machines=2, rounds=5)

    model = Net(data.num_features, 4)
    model.load_state_dict(torch.load(run.path / "best.pt", weights_only=True))
    with torch.no_grad():
        predicted = model.eval()(data.x, data.edge_index).argmax(dim=1)
    right = (predicted == data.y)[data.test_mask].float().mean()
    print(f"test accuracy {right:.3f}, recorded {run.summary['test_score_at_best_val']:.3f}")
    assert abs(right - run.summary["test_score_at_best_val"]) < 1e-6

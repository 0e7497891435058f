"""A method of your own: FedProx (Li et al., 2020), which keeps the machines near the model that they received.

llcg train algorithm=own algorithm.target=own_method.FedProx algorithm.options.mu=0.1
"""

from torch import Tensor

from llcg_dist import Algorithm


class FedProx(Algorithm):
    """Parameter averaging, where a machine's loss has the proximal term mu/2 |theta - theta_start|^2."""

    def __init__(self, config, mu: float = 0.01) -> None:  # type: ignore[no-untyped-def]
        super().__init__(config)
        self.mu = mu

    def local_gradient(self, gradient: Tensor, theta: Tensor, start: Tensor) -> Tensor:
        return gradient + self.mu * (theta - start)


if __name__ == "__main__":
    import llcg_dist

    for mu in (0.0, 0.1):  # mu=0 is plain averaging
        run = llcg_dist.fit(
            "dataset=synthetic dataset.nodes=2000",
            algorithm="own_method.FedProx",
            machines=2,
            rounds=8,
            overrides={"algorithm.options.mu": mu, "algorithm.K": 16},
        )
        print(f"mu={mu}: test score {run.summary['test_score_at_best_val']:.3f}")

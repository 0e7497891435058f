"""ResGCN: graph convolutions with residual connections (Li et al., DeepGCNs, 2019)."""

from torch import nn

from llcg_dist.config.model import ModelConfig, Norm
from llcg_dist.models.layers import Gcn
from llcg_dist.models.stages import GraphModel, Stage


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    r"""L, then `layers` steps :math:`h \leftarrow h + G(\mathrm{dropout}(\mathrm{ReLU}(\mathrm{BN}(h))))`, then L.

    The linear layers make all convolutions equally wide, so that each of them can have a residual connection. BatchNorm
    and ReLU come before a convolution (and before the last L), the default order of PyG's DeepGCNLayer.
    """

    def norm() -> nn.BatchNorm1d | None:
        return nn.BatchNorm1d(config.hidden) if config.norm == Norm.batch else None

    input_stage = Stage(
        nn.Linear(num_features, config.hidden),
        nn.BatchNorm1d(num_features, affine=False) if config.input_norm else None,
    )
    steps = [
        Stage(Gcn(config.hidden, config.hidden, config.gcn_norm), norm(), True, config.dropout, residual=True)
        for _ in range(config.layers)
    ]
    output_stage = Stage(nn.Linear(config.hidden, num_classes), norm(), True, config.dropout)
    return GraphModel([input_stage, *steps, output_stage])

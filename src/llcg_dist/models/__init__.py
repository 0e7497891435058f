"""Settings -> module of PyG layers over blocks."""

from llcg_dist.config import ModelConfig, arch_string
from llcg_dist.models.arch import ArchModel


def build_model(config: ModelConfig, num_features: int, num_classes: int) -> ArchModel:
    arch = arch_string(config)
    return ArchModel(arch, num_features, config.hidden, num_classes, config.dropout, config.gcn_norm)

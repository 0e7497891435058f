"""Models: settings of the group `model` -> GraphModel. registry.py lists them; arch.py builds sage, gcn, mlp, arch."""

from llcg_dist.models.registry import build_model

__all__ = ["build_model"]

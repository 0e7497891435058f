"""Subgraph approximation (Angerd et al., 2020): PSGD-PA with a sample of the neighbourhood stored at every part."""

from llcg_dist.algorithms.psgd_pa import PsgdPa
from llcg_dist.data.derived import DataAccess


class SubgraphApprox(PsgdPa):
    """Every part holds `storage_overhead` times its size in remote nodes; they are read and never trained on."""

    data_access = DataAccess.PART_AND_HALO

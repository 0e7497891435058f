"""A graph's sizes and a host's rates that stages are predicted from: round numbers, to be changed one at a time."""

import dataclasses
from typing import Any

from llcg_dist.doctor.rates import PartitionRates, Rates, TrainingRates
from llcg_dist.doctor.sizes import GraphSize

SIZE = GraphSize(nodes=1_000, edges=10_000, features=10, classes=4, train_share=0.5)

NOTHING = PartitionRates(**{field.name: 0.0 for field in dataclasses.fields(PartitionRates)})
"""A host that takes no time."""

EVERYTHING = PartitionRates(**{field.name: 1e-6 for field in dataclasses.fields(PartitionRates)})
TRAINING = TrainingRates(step=0.01, server_step=0.02, evaluate_node=1e-6, evaluate_entry=1e-7)
PLENTY = 1 << 50
"""Memory in which all edges are sorted together."""


def size(**changes: Any) -> GraphSize:
    return dataclasses.replace(SIZE, **changes)


def rates(memory: int = PLENTY, cores: int = 2, free_memory: int = PLENTY, **of_partition: float) -> Rates:
    return Rates(dataclasses.replace(NOTHING, **of_partition), TRAINING, cores, memory, free_memory)

"""The start of a job: all ranks compare what they are, and the server decides who trains which part.

torchrun orders hosts as it likes, and anew at every restart, so parts do not follow ranks: each rank offers the parts
that its disk holds, and the server matches them.
"""

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from llcg_dist import __version__
from llcg_dist.config import fingerprint
from llcg_dist.errors import UserError
from llcg_dist.schema import Config


def offer(config: Config, store_ids: dict[int, str], checkpoints: dict[int, list[int]]) -> dict[str, Any]:
    """What a rank says of itself: the parts on its disk, each with the store it came from and its whole checkpoints."""
    return {
        "llcg_dist": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "settings": fingerprint(config),
        "parts": {str(part): store_id for part, store_id in store_ids.items()},
        "checkpoints": {str(part): rounds for part, rounds in checkpoints.items()},
    }


def agree(offers: Sequence[dict[str, Any]], store_id: str, num_parts: int) -> list[int]:
    """The rank that trains each part. Offers are by rank, the server's first; raises UserError where they disagree."""
    for key in ("llcg_dist", "torch", "python", "settings"):
        for rank, other in enumerate(offers):
            if other[key] != offers[0][key]:
                raise UserError(
                    f"rank {rank} has {key} {other[key]}, rank 0 has {offers[0][key]}: start all ranks alike"
                )
    return match_parts([_usable(other, store_id, num_parts) for other in offers[1:]], num_parts)


def newest_common_round(server: Sequence[int], offers: Sequence[dict[str, Any]], rank_of_part: Sequence[int]) -> int:
    """The newest round that the server and the machine of every part have whole; 0 where there is none."""
    common = set(server)
    for part, rank in enumerate(rank_of_part):
        common &= set(offers[rank]["checkpoints"].get(str(part), []))
    return max(common, default=0)


def match_parts(held: Sequence[set[int]], num_parts: int) -> list[int]:
    """held[i]: the parts on the disk of rank i+1. Rank p+1 takes part p where it can; else any complete matching."""
    if len(held) == num_parts and all(part in parts for part, parts in enumerate(held)):
        return [part + 1 for part in range(num_parts)]
    table = np.array([[part in parts for parts in held] for part in range(num_parts)], dtype=np.int8)
    machine_of_part = maximum_bipartite_matching(csr_array(table), perm_type="column")
    missing = [part for part, machine in enumerate(machine_of_part) if machine < 0]
    if missing:
        places = "; ".join(f"rank {i + 1} holds {sorted(parts) or 'none'}" for i, parts in enumerate(held))
        raise UserError(
            f"no rank is left for part {missing[0]} ({places}); copy the part to its host, or share partition.root"
        )
    return [int(machine) + 1 for machine in machine_of_part]


def _usable(other: dict[str, Any], store_id: str, num_parts: int) -> set[int]:
    return {int(part) for part, found in other["parts"].items() if found == store_id and int(part) < num_parts}

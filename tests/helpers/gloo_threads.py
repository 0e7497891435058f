"""Members of a Gloo group as threads of this process: real connections without real processes."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch.distributed as dist

LIMIT = timedelta(seconds=20)


def at_once(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of them returns or raises; they run at the same time."""
    results: list[Any] = [None] * len(acts)

    def run(place: int, act: Callable[[], Any]) -> None:
        try:
            results[place] = act()
        except Exception as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def gloo_members(size: int) -> list[Any]:
    """The ends of a group on 127.0.0.1."""
    store = dist.HashStore()
    device = dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")

    def connected(rank: int) -> Any:
        options: Any = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._devices, options._threads, options._timeout = [device], 1, LIMIT
        return dist.ProcessGroupGloo(store, rank, size, options)

    return at_once([partial(connected, rank) for rank in range(size)])

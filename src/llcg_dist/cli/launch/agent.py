"""torchrun's elastic agent, for jobs of which a host may be gone at the end, and another take its place."""

import threading
from collections.abc import Callable
from typing import Any

from torch.distributed.elastic.agent.server.api import Worker, WorkerGroup, WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import MultiprocessContext, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousParameters, rendezvous_handler_registry
from torch.distributed.launcher.api import LaunchConfig

from llcg_dist.cli.launch.rendezvous import PlaceHandler


class EndSignal:
    """Lets ranks that are done end. torch's own event would wait for ever for one that was killed while it waited for
    the others: then a thread does, and the agent, which goes on, sees that the rank was killed."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def set(self) -> None:
        threading.Thread(target=self._event.set, daemon=True).start()


class Agent(LocalElasticAgent):
    """torchrun's agent of one host."""

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        started = super()._start_workers(worker_group)
        if isinstance(self._pcontext, MultiprocessContext):
            ends: Any = EndSignal(self._pcontext._worker_finished_event)
            self._pcontext._worker_finished_event = ends
        return started

    def _exit_barrier(self) -> None:
        """torch waits here 300 s for every host that has met, also for one that is gone. Nobody needs it: ranks leave
        their job together, and the head keeps its store until the launchers that are alive have left (JobStore)."""

    def _assign_worker_ranks(
        self, store: Any, group_rank: int, group_world_size: int, spec: WorkerSpec
    ) -> list[Worker]:
        """The ranks that this host takes over; otherwise, as torch numbers those of all hosts."""
        handler = spec.rdzv_handler
        if not isinstance(handler, PlaceHandler):
            return super()._assign_worker_ranks(store, group_rank, group_world_size, spec)
        numbers, size = handler.place.torchrun_ranks, handler.place.size
        return [Worker(here, number, number, size, size) for here, number in enumerate(numbers)]


def run_agent(config: LaunchConfig, entrypoint: Callable[..., None] | str, arguments: list[Any]) -> None:
    """Starts this host's ranks and waits for their end, as torch's elastic_launch does; raises what that raises."""
    parameters = RendezvousParameters(
        backend=config.rdzv_backend,
        endpoint=config.rdzv_endpoint,
        run_id=config.run_id,
        min_nodes=config.min_nodes,
        max_nodes=config.max_nodes,
        local_addr=config.local_addr,
        **config.rdzv_configs,
    )
    spec = WorkerSpec(
        role=config.role,
        local_world_size=config.nproc_per_node,
        entrypoint=entrypoint,
        args=tuple(arguments),
        rdzv_handler=rendezvous_handler_registry.create_handler(parameters),
        max_restarts=config.max_restarts,
        monitor_interval=config.monitor_interval,
        local_addr=config.local_addr,
    )
    assert config.logs_specs is not None
    assert config.shutdown_timeout is not None
    agent = Agent(spec, config.logs_specs, config.start_method, shutdown_timeout=config.shutdown_timeout)
    closes = True  # nobody can join any more
    try:
        result = agent.run()
        if result.is_failed():
            raise ChildFailedError(name="llcg_dist.train", failures=result.failures)
        closes = not config.rdzv_configs["goes_on"]  # the others may train without this host, and start anew with it
    except SignalException:
        closes = False
        raise
    finally:
        if closes:
            spec.rdzv_handler.shutdown()

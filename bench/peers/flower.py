"""Flower with FedAvg: every client trains PyG's GraphSAGE on its own part, without the cut edges; the server averages.

    FLOWER/bin/python -m bench.peers.flower SETTINGS RANK      (rank 0: the server, 1 and up: clients)

FLOWER is the environment that bench/flower_processes.py makes. Integer counters of BatchNorm are not sent.
"""

import contextlib
import os
import socket
import sys
import time
from typing import Any

import numpy as np
import torch
from flwr.client import NumPyClient
from flwr.common import ndarrays_to_parameters
from flwr.compat.client.app import start_numpy_client
from flwr.server import ServerConfig, start_server
from flwr.server.strategy import FedAvg
from torch import nn

from bench.peers.common import Clock, Settings, step, validation_score, write_peak
from llcg_dist.data.views import GraphView

PORT = 29512
LARGEST = 1 << 30


def floats(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value for name, value in model.state_dict().items() if value.is_floating_point()}


def arrays(model: nn.Module) -> list[np.ndarray]:
    return [value.numpy().copy() for value in floats(model).values()]


def load(model: nn.Module, values: list[np.ndarray]) -> None:
    state = {name: torch.from_numpy(np.array(value)) for name, value in zip(floats(model), values, strict=True)}
    model.load_state_dict(state, strict=False)


class Client(NumPyClient):
    def __init__(self, settings: Settings, part: int) -> None:
        graph = settings.graph(f"part{part}")
        view, self._settings, self._part = GraphView(graph), settings, part
        self._model, self._batches = settings.model(graph), settings.batches(view, part)
        self._num_nodes = len(view.train_nodes)

    def fit(self, parameters: list[np.ndarray], config: Any) -> Any:
        load(self._model, parameters)
        optimizer = torch.optim.Adam(self._model.parameters(), lr=self._settings.lr)
        self._model.train()
        for _ in range(self._settings.steps):
            step(self._model, optimizer, next(self._batches))
        write_peak(self._settings, f"client{self._part}")
        return arrays(self._model), self._num_nodes, {}


class TimedFedAvg(FedAvg):
    """FedAvg whose clock starts when all clients are there: choosing those of a round waits for them."""

    def __init__(self, clock: Clock, **settings: Any) -> None:
        super().__init__(**settings)
        self._clock = clock

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        chosen = super().configure_fit(server_round, parameters, client_manager)
        self._clock.start()
        return chosen


def serve(settings: Settings, address: str) -> None:
    graph = settings.graph()
    model, clock = settings.model(graph), Clock(settings)

    def evaluate(round_: int, parameters: list[np.ndarray], config: Any) -> Any:
        load(model, parameters)
        if round_ and clock.score(lambda: validation_score(model, graph)):
            write_peak(settings, "server")
            os._exit(0)
        return 0.0, {}

    count = {f"min_{what}_clients": settings.machines for what in ("fit", "available")}
    strategy = TimedFedAvg(
        clock,
        fraction_evaluate=0.0,
        evaluate_fn=evaluate,
        initial_parameters=ndarrays_to_parameters(arrays(model)),
        **count,
    )
    rounds = ServerConfig(num_rounds=10**6)
    start_server(server_address=address, config=rounds, strategy=strategy, grpc_max_message_length=LARGEST)


def wait_for_server(host: str, port: int, seconds: float = 120) -> None:
    """A client that finds no server gives up at once."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.2)


if __name__ == "__main__":
    torch.set_num_threads(1)
    given, rank = Settings.read(sys.argv[1]), int(sys.argv[2])
    place = f"{given.head}:{PORT}"
    if rank == 0:
        serve(given, place)
    else:
        wait_for_server(given.head, PORT)
        start_numpy_client(server_address=place, client=Client(given, rank - 1), grpc_max_message_length=LARGEST)

"""Rounds of Flower's gRPC, for bench/exchange.py: the model goes to every client and comes back as it is, no training.

    FLOWER/bin/python flower_rounds.py server ADDRESS CLIENTS SIZES...    (numbers of rounds come through its stdin)
    FLOWER/bin/python flower_rounds.py client ADDRESS

FLOWER is a virtual environment of its own: Flower wants an older protobuf than TensorBoard. So nothing of this project
is imported here. The server answers a line `ROUNDS` with a line when these are over, and ends with its input.
"""

import os
import sys
from typing import Any

import numpy as np
from flwr.client import NumPyClient
from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.client.app import start_numpy_client
from flwr.server import ServerConfig, start_server
from flwr.server.strategy import Strategy

LARGEST = 1 << 30


class Returns(NumPyClient):
    def fit(self, parameters: Any, config: Any) -> Any:
        return parameters, 1, {}


class OnDemand(Strategy):
    """Rounds as they are asked for. What arrives is read into arrays and not averaged: the exchange is what counts."""

    def __init__(self, clients: int, sizes: list[int]) -> None:
        self._clients, self._left = clients, 0
        random = np.random.default_rng(0)
        self._model = ndarrays_to_parameters([random.standard_normal(size, np.float32) for size in sizes])

    def initialize_parameters(self, client_manager: Any) -> Any:
        return self._model

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        client_manager.wait_for(self._clients)
        if self._left == 0:
            print("ready", flush=True)
            asked = sys.stdin.readline()
            if not asked:
                os._exit(0)
            self._left = int(asked)
        return [(client, FitIns(parameters, {})) for client in client_manager.all().values()]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        if failures or len(results) != self._clients:
            print(f"failed: {failures}", flush=True)
            os._exit(1)
        self._left -= 1
        arrays = [parameters_to_ndarrays(result.parameters) for _, result in results]
        return ndarrays_to_parameters(arrays[0]), {}

    def configure_evaluate(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        return []

    def aggregate_evaluate(self, server_round: int, results: Any, failures: Any) -> Any:
        return None, {}

    def evaluate(self, server_round: int, parameters: Any) -> Any:
        return None


if __name__ == "__main__":
    role, address, *numbers = sys.argv[1:]
    if role == "server":
        clients, *sizes = map(int, numbers)
        rounds = ServerConfig(num_rounds=10**9)
        start_server(
            server_address=address,
            config=rounds,
            strategy=OnDemand(clients, sizes),
            grpc_max_message_length=LARGEST,
        )
    else:
        start_numpy_client(server_address=address, client=Returns(), grpc_max_message_length=LARGEST)

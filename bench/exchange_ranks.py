"""The ranks of bench.exchange, bench.star and bench.sealing: a line `KIND SIZE ROUNDS` on their input is a turn.

Kinds: raw (torch.distributed's own broadcast and gather), channel (ours, with nothing done to the model at either end),
sealed (the same with a job's key), cipher (what that seals and opens, without a network), and the values of
algorithm.exchange_dtype (a round's exchange as a run has it).
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle

import torch
import torch.distributed as dist
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from tests.helpers.netns import Host
from torch import Tensor

from bench.turns import ended, free_port, require_line, write_line
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.control import leave
from llcg_dist.comm.error_feedback import machine_compressor, server_compressor
from llcg_dist.comm.job_key import KEY_BYTES
from llcg_dist.comm.ledger import Kind, Ledger
from llcg_dist.comm.machine_channel import MachineChannel
from llcg_dist.comm.members import Members
from llcg_dist.comm.messages import MESSAGES, Finish, Message, Train, Trained, TrainStats
from llcg_dist.comm.process_transport import ProcessTransport, answer_requests
from llcg_dist.comm.resources import RankResources
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.compose import load_config
from llcg_dist.config.model import ModelConfig
from llcg_dist.models import build_model
from llcg_dist.training.flat_vector import contiguous_parameters, flatten, statistics_mask
from llcg_dist.training.screening import Screener
from llcg_dist.training.threads import prepare_computing

FEATURES, CLASSES = 602, 41
"""Reddit's sizes: the small model is the paper's for it, three SAGE layers."""
HIDDEN = {"small": 256, "large": 2200}
RAW, CHANNEL, SEALED, CIPHER = "raw", "channel", "sealed", "cipher"
Rounds = Callable[[int], None]


def model_of(size: str) -> torch.nn.Module:
    return build_model(ModelConfig(hidden=HIDDEN[size], layers=3), FEATURES, CLASSES)


@contextmanager
def ranks(machines: int, hosts: Sequence[Host] = ()) -> Iterator[Callable[[str], None]]:
    """A server and so many machines, all on this host or each on one of `hosts`."""
    size = machines + 1
    address = hosts[0].address if hosts else "127.0.0.1"
    meeting = {"MASTER_ADDR": address, "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    meeting |= {"RAW_PORT": str(free_port()), "SEALED_PORT": str(free_port())}
    program = [sys.executable, "-m", "bench.exchange_ranks"]
    started = [
        subprocess.Popen(
            hosts[rank].command(*program) if hosts else program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | meeting | {"RANK": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(size)
    ]

    def turn(line: str) -> None:
        for process in started:
            write_line(process.stdin, line)
        require_line(started[0], "done")

    with ended(started):
        yield turn


def take_turns() -> None:
    prepare_computing(threads=1)
    cluster = Cluster("gloo", 120, Ledger(frozenset({Kind.PARAMETERS})))
    sealed: Cluster | None = None
    contenders: dict[str, Rounds] = {}
    for line in sys.stdin:
        kind, size, rounds = line.split()
        name = f"{kind} {size}"
        if kind == SEALED:
            sealed = sealed or sealed_cluster()
        if name not in contenders:
            kinds = {RAW: raw, CIPHER: cipher}
            used = sealed if kind == SEALED and sealed else cluster
            contenders[name] = kinds[kind](used, size) if kind in kinds else ours(used, kind, size)
        contenders[name](int(rounds))
        if cluster.rank == 0:
            print("done", flush=True)  # noqa: T201 - the answer to the one who asked
    for each in filter(None, (sealed, cluster)):
        leave(each)


def sealed_cluster() -> Cluster:
    """The same ranks once more, with links that are sealed."""
    os.environ["MASTER_PORT"] = os.environ["SEALED_PORT"]
    key = RankResources(key=bytes(KEY_BYTES))
    return Cluster("gloo", 120, Ledger(frozenset({Kind.PARAMETERS})), key)


def cipher(cluster: Cluster, size: str) -> Rounds:
    """At the server: seals and opens as many bytes as all ranks together do in a round, and nothing else."""
    model = flatten(model_of(size)).view(torch.uint8)
    frame, aead = torch.empty(len(model) + 16, dtype=torch.uint8), AESGCM(bytes(KEY_BYTES))
    pieces = [tensor.numpy().data for tensor in (model, frame)]

    def run(rounds: int) -> None:
        messages = 2 * (cluster.size - 1) * rounds if cluster.rank == 0 else 0
        for number in range(messages):
            aead.encrypt_into(number.to_bytes(12, "big"), pieces[0], b"", pieces[1])
            aead.decrypt_into(number.to_bytes(12, "big"), pieces[1], b"", pieces[0])

    return run


def raw(cluster: Cluster, size: str) -> Rounds:
    """Gloo's own broadcast and gather over all ranks, in a group of their own."""
    if not dist.is_initialized():
        port = int(os.environ["RAW_PORT"])
        store = dist.TCPStore(os.environ["MASTER_ADDR"], port, is_master=cluster.rank == 0, wait_for_workers=False)
        dist.init_process_group("gloo", store=store, rank=cluster.rank, world_size=cluster.size)
    sent = flatten(model_of(size))
    received = [torch.zeros_like(sent) for _ in range(cluster.size)] if cluster.rank == 0 else None

    def run(rounds: int) -> None:
        for _ in range(rounds):
            dist.broadcast(sent, src=0)
            dist.gather(sent, received, dst=0)

    return run


def ours(cluster: Cluster, kind: str, size: str) -> Rounds:
    bare = kind in (CHANNEL, SEALED)
    model, dtype = model_of(size), "float32" if bare else kind
    return (serve if cluster.rank == 0 else answer)(cluster, model, dtype, statistics_mask(model), not bare)


def serve(cluster: Cluster, model: torch.nn.Module, dtype: str, statistics: Tensor, checks: bool) -> Rounds:
    compressor, machines = server_compressor(dtype, statistics), cluster.size - 1
    transport = ProcessTransport(cluster, range(1, cluster.size), compressor.codec)
    channel = ServerChannel(transport, compressor, cluster.ledger, MESSAGES, Members(machines))
    screener = Screener(load_config([]), [1.0] * machines, statistics, channel.names)
    theta = flatten(model)
    models = cycle([theta, theta.clone()])  # a channel does not send the same model twice

    def run(rounds: int) -> None:
        for round_ in range(1, rounds + 1):
            channel.send(Train(round_, next(models)))
            replies = channel.replies()
            if checks:
                screener.models([reply.vector for reply in replies], [0.0] * machines, theta, round_)
            channel.ledger.end_round()
        channel.send(Finish(rounds))

    return run


class Returns:
    """A machine that sends back the model it gets, by way of a module's parameters where `loads` says so."""

    def __init__(self, model: torch.nn.Module, loads: bool) -> None:
        self._own, self._loads = contiguous_parameters(model), loads

    def handle(self, request: Message) -> Message | None:
        if isinstance(request, Finish):
            return None
        theta = self._own.copy_(request.vector) if self._loads else request.vector
        return Trained(request.round, theta, stats=TrainStats(0.0, 0.0, 1, 0.0))

    def after_reply(self) -> None: ...


def answer(cluster: Cluster, model: torch.nn.Module, dtype: str, statistics: Tensor, loads: bool) -> Rounds:
    compressor = machine_compressor(dtype, statistics)
    channel = MachineChannel(Returns(model, loads), compressor, cluster.ledger, MESSAGES)
    return lambda rounds: answer_requests(cluster, channel, compressor.codec)


if __name__ == "__main__":
    take_turns()

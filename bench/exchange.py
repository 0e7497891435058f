"""Is an exchange of models as fast as its bytes allow? One run, contenders take turns, all of them real processes:

    python -m bench.exchange [--machines 8] [--repeats 9] [--flower PYTHON]

- raw: torch.distributed's broadcast and gather of one float32 vector, Gloo, and nothing else;
- channel: the same through our channel: messages are counted, carry control, and are waited for in a second thread;
- float32, bfloat16, int8: a round's exchange as a run has it with algorithm.exchange_dtype: the server's model is
  written, broadcast, read and put into a model at every machine, taken out again, sent, received and checked;
- Flower: the same model over Flower's gRPC, to as many clients and back (bench/flower_rounds.py).

Nobody trains. Flower lives in an environment of its own, made at the first run (`.venv-flower`): its protobuf is older
than TensorBoard's. Where it cannot be installed it is left out, which the table says.
"""

import argparse
import os
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import IO, Any

import torch
import torch.distributed as dist
from torch import Tensor

from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from llcg_dist.comm.channel import MachineChannel, ServerChannel
from llcg_dist.comm.control import leave
from llcg_dist.comm.error_feedback import machine_compressor, server_compressor
from llcg_dist.comm.ledger import Kind, Ledger
from llcg_dist.comm.messages import MESSAGES, Finish, Message, Train, Trained, TrainStats
from llcg_dist.comm.process_transport import ProcessTransport, answer_requests
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import ModelConfig
from llcg_dist.job.process import keep_freed_memory
from llcg_dist.models import build_model
from llcg_dist.records.console import say
from llcg_dist.training.flat_vector import contiguous_parameters, flatten, statistics_mask
from llcg_dist.training.screening import Screener

FEATURES, CLASSES = 602, 41
"""Reddit's sizes: the small model is the paper's for it, three SAGE layers."""
HIDDEN = {"small": 256, "large": 2200}
ROUNDS = {"small": 10, "large": 2}
"""How many rounds a contender takes in a turn."""
DTYPES = ("float32", "bfloat16", "int8")
CHANNEL = "channel"
"""float32 as it crosses, with nothing done to it at either end."""
FLOWER = "flwr >=1.41,<1.42"
Rounds = Callable[[int], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sizes", nargs="*", choices=[*HIDDEN], default=[*HIDDEN])
    parser.add_argument("--flower", type=Path, default=Path(".venv-flower/bin/python"), help="a Python that has flwr")
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        take_turns()
        return
    with ExitStack() as stack:
        gloo = stack.enter_context(ranks(arguments.machines))
        contenders = {
            f"{kind} {size}": partial(gloo, f"{kind} {size} {ROUNDS[size]}")
            for size in arguments.sizes
            for kind in ("raw", CHANNEL, *DTYPES)
        }
        if has_flower(arguments.flower):
            flower = stack.enter_context(flower_processes(arguments.flower, arguments.machines))
            contenders["Flower small"] = partial(flower, str(ROUNDS["small"]))
        turns = interleaved(contenders, arguments.repeats)
    seconds = {name: [turn / ROUNDS[name.split()[1]] for turn in taken] for name, taken in turns.items()}
    report(seconds, arguments.machines)


def report(seconds: dict[str, list[float]], machines: int) -> None:
    sizes = {size: message_bytes(size) for size in HIDDEN}
    rows, claims = [], []
    for name, taken in seconds.items():
        kind, size = name.split()
        megabytes = sizes[size].get(kind, sizes[size]["float32"]) / 1e6
        against_raw = ratio(taken, seconds[f"raw {size}"])
        milliseconds = Spread.of([1e3 * second for second in taken])
        rows.append([kind, f"{sizes[size]['float32'] / 1e6:.2f}", f"{megabytes:.2f}", milliseconds, against_raw])
        if kind == "float32":
            what = f"float32 / raw Gloo, model of {megabytes:.3g} MB"
            claims.append(Claim(what, against_raw, at_most=1.15))
    for size, found in sizes.items():
        sent = Spread.of([found["int8"] / found["float32"]])
        claims.append(Claim(f"int8 / float32, bytes of the {size} model", sent, at_most=0.27))
    if "Flower small" in seconds:
        faster = ratio(seconds["Flower small"], seconds["float32 small"])
        claims.append(Claim("Flower / float32, seconds of a round", faster, at_least=3.0))
    head = ["exchange", "model, MB", "message, MB", "ms a round", "of raw Gloo"]
    missing = "" if "Flower small" in seconds else "\n\nFlower was not installed here and is not in the table."
    text = f"One server and {machines} machines on one host; median (lowest to highest) of {len(taken)} turns."
    publish("exchange", f"{text}\n\n{table(head, rows)}{missing}", claims, {"seconds": seconds})


def model_of(size: str) -> torch.nn.Module:
    return build_model(ModelConfig(hidden=HIDDEN[size], layers=3), FEATURES, CLASSES)


def message_bytes(size: str) -> dict[str, int]:
    statistics = statistics_mask(model_of(size))
    codecs = {dtype: server_compressor(dtype, statistics).codec for dtype in DTYPES}
    return {dtype: codec.elements * codec.dtype.itemsize for dtype, codec in codecs.items()}


# The ranks of our own job, and of raw Gloo's: a line `KIND SIZE ROUNDS` on their input is a turn.


@contextmanager
def ranks(machines: int) -> Iterator[Callable[[str], None]]:
    size = machines + 1
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    meeting["RAW_PORT"] = str(free_port())
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.exchange"],
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
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    keep_freed_memory()  # as every rank of a run
    cluster = Cluster("gloo", 120, Ledger(frozenset({Kind.PARAMETERS})))
    contenders: dict[str, Rounds] = {}
    for line in sys.stdin:
        kind, size, rounds = line.split()
        name = f"{kind} {size}"
        if name not in contenders:
            contenders[name] = raw(cluster, size) if kind == "raw" else ours(cluster, kind, size)
        contenders[name](int(rounds))
        if cluster.rank == 0:
            print("done", flush=True)  # noqa: T201 - the answer to the one who asked
    leave(cluster)


def raw(cluster: Cluster, size: str) -> Rounds:
    """Gloo's own broadcast and gather over all ranks, in a group of their own."""
    if not dist.is_initialized():
        port = int(os.environ["RAW_PORT"])
        store = dist.TCPStore("127.0.0.1", port, is_master=cluster.rank == 0, wait_for_workers=False)
        dist.init_process_group("gloo", store=store, rank=cluster.rank, world_size=cluster.size)
    sent = flatten(model_of(size))
    received = [torch.zeros_like(sent) for _ in range(cluster.size)] if cluster.rank == 0 else None

    def run(rounds: int) -> None:
        for _ in range(rounds):
            dist.broadcast(sent, src=0)
            dist.gather(sent, received, dst=0)

    return run


def ours(cluster: Cluster, kind: str, size: str) -> Rounds:
    model, dtype = model_of(size), "float32" if kind == CHANNEL else kind
    return (serve if cluster.rank == 0 else answer)(cluster, model, dtype, statistics_mask(model), kind != CHANNEL)


def serve(cluster: Cluster, model: torch.nn.Module, dtype: str, statistics: Tensor, checks: bool) -> Rounds:
    compressor, machines = server_compressor(dtype, statistics), cluster.size - 1
    transport = ProcessTransport(cluster, range(1, cluster.size), compressor.codec)
    channel = ServerChannel(transport, compressor, cluster.ledger, MESSAGES)
    screener = Screener(load_config([]), [1.0] * machines, statistics)
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


# Flower's processes.


def has_flower(python: Path) -> bool:
    """Whether this Python imports Flower; the default environment is made if there is none."""
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", FLOWER]
        subprocess.run(pip, check=False)
    found = subprocess.run([python, "-c", "import flwr"], capture_output=True).returncode == 0
    if not found:
        say(f"{python} has no Flower (pip install '{FLOWER}'): it is left out")
    return found


@contextmanager
def flower_processes(python: Path, clients: int) -> Iterator[Callable[[str], None]]:
    program, address = str(Path(__file__).with_name("flower_rounds.py")), f"127.0.0.1:{free_port()}"
    sizes = [str(tensor.numel()) for tensor in model_of("small").state_dict().values() if tensor.is_floating_point()]
    settings = os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "text": True, "env": settings}
    server = [str(python), program, "server", address, str(clients), *sizes]
    started = [subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **quiet)]
    wait_for_port(address)
    started += [
        subprocess.Popen([str(python), program, "client", address], stdout=subprocess.DEVNULL, **quiet)
        for _ in range(clients)
    ]
    with ended(started):
        require_line(started[0], "ready")

        def turn(line: str) -> None:
            write_line(started[0].stdin, line)
            require_line(started[0], "ready")

        yield turn


# What both need.


@contextmanager
def ended(processes: list[subprocess.Popen[str]]) -> Iterator[None]:
    """Closes the input of the processes at the end, which ends them, and kills those that go on."""
    try:
        yield
    finally:
        for process in processes:
            if process.stdin:
                process.stdin.close()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def write_line(pipe: IO[str] | None, line: str) -> None:
    assert pipe is not None
    pipe.write(f"{line}\n")
    pipe.flush()


def require_line(process: subprocess.Popen[str], expected: str) -> None:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if line != expected:
        raise SystemExit(f"{process.args!r}: said {line!r} and not {expected!r}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(address: str, tries: int = 300) -> None:
    host, port = address.split(":")
    for _ in range(tries):
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nobody listens at {address}")


if __name__ == "__main__":
    main()

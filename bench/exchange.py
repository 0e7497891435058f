"""Is an exchange of models as fast as its bytes allow? One run, contenders take turns, all of them real processes:

    python -m bench.exchange [--machines 8] [--repeats 9] [--flower PYTHON]

- raw: torch.distributed's broadcast and gather of one float32 vector, Gloo, and nothing else;
- channel: the same through our channel: messages are counted, carry control, and are waited for in a second thread;
- float32, bfloat16, int8: a round's exchange as a run has it with algorithm.exchange_dtype: the server's model is
  written, broadcast, read and put into a model at every machine, taken out again, sent, received and checked;
- Flower: the same model over Flower's gRPC, to as many clients and back (bench/flower_rounds.py).

Nobody trains. Where Flower cannot be installed it is left out, which the table says.
"""

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.exchange_ranks import CHANNEL, HIDDEN, RAW, model_of, ranks
from bench.flower_processes import flower_processes, has_flower
from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.training.flat_vector import statistics_mask

ROUNDS = {"small": 10, "large": 2}
"""How many rounds a contender takes in a turn."""
DTYPES = ("float32", "bfloat16", "int8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sizes", nargs="*", choices=[*HIDDEN], default=[*HIDDEN])
    parser.add_argument("--flower", type=Path, default=Path(".venv-flower/bin/python"), help="a Python that has flwr")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        gloo = stack.enter_context(ranks(arguments.machines))
        contenders = {
            f"{kind} {size}": partial(gloo, f"{kind} {size} {ROUNDS[size]}")
            for size in arguments.sizes
            for kind in (RAW, CHANNEL, *DTYPES)
        }
        if has_flower(arguments.flower):
            tensors = model_of("small").state_dict().values()
            sizes = [tensor.numel() for tensor in tensors if tensor.is_floating_point()]
            flower = stack.enter_context(flower_processes(arguments.flower, arguments.machines, sizes))
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


def message_bytes(size: str) -> dict[str, int]:
    statistics = statistics_mask(model_of(size))
    codecs = {dtype: server_compressor(dtype, statistics).codec for dtype in DTYPES}
    return {dtype: codec.elements * codec.dtype.itemsize for dtype, codec in codecs.items()}


if __name__ == "__main__":
    main()

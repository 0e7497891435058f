"""What does it cost to seal every message? The same models through plain and sealed links, in turns:

    python -m bench.sealing [--machines 8] [--megabits 1000] [--repeats 9]

- channel: the exchange of a round over plain links (cluster.sealed=false);
- sealed: the same with a job's key;
- cipher: AES-256-GCM over the bytes of a round, sealed and opened once, by one process and without a network.

On one host, and with every rank a host of its own (a network namespace) behind a limited link. Nobody trains. The
machine has two cores for all ranks, so what the ranks of a cluster do side by side is done here one after the other.
Needs root and iproute2 for the links.
"""

import argparse
import signal
import sys
from contextlib import ExitStack
from functools import partial

from tests.helpers.netns import hosts

from bench.exchange_ranks import CHANNEL, CIPHER, SEALED, model_of, ranks
from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from llcg_dist.training.flat_vector import flatten

ROUNDS = {"small": 10, "large": 2}
ON_LINKS = 2
"""Rounds a turn behind a limited link."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=8)
    parser.add_argument("--megabits", type=int, default=1000, help="0: one host alone")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    rows, claims, figures = [], [], {}
    places = [("one host", 0)] + ([(f"{arguments.megabits} Mbit/s", arguments.megabits)] if arguments.megabits else [])
    for where, megabits in places:
        for size in ROUNDS if not megabits else ("small",):
            seconds = measure(arguments.machines, megabits, size, arguments.repeats)
            figures[f"{where}, {size}"] = seconds
            channel, sealed, cipher = (
                Spread.of([1e3 * second for second in seconds[k]]) for k in (CHANNEL, SEALED, CIPHER)
            )
            against = ratio(seconds[SEALED], seconds[CHANNEL])
            rows.append([where, size, channel, sealed, cipher, against])
            if megabits:
                claims.append(Claim(f"sealed / plain, a round at {where}", against, at_most=1.15))
            else:
                both = [a + b for a, b in zip(seconds[CHANNEL], seconds[CIPHER], strict=True)]
                claims.append(Claim(f"sealed / (plain + cipher), {size}", ratio(seconds[SEALED], both), at_most=1.3))
    head = ["links", "model", "plain, ms", "sealed, ms", "cipher alone, ms", "sealed / plain"]
    sizes = " and ".join(f"{flatten(model_of(size)).nbytes / 1e6:.3g} MB ({size})" for size in ROUNDS)
    text = f"One server and {arguments.machines} machines; models of {sizes} down and up; "
    text += f"milliseconds a round, median (lowest to highest) of {arguments.repeats} turns."
    publish("sealing", f"{text}\n\n{table(head, rows)}", claims, figures)


def measure(machines: int, megabits: int, size: str, repeats: int) -> dict[str, list[float]]:
    """Seconds a round."""
    rounds = ON_LINKS if megabits else ROUNDS[size]
    with ExitStack() as stack:
        places = stack.enter_context(hosts(1 + machines)) if megabits else []
        for place in places:
            place.limit(megabits)
        turn = stack.enter_context(ranks(machines, places))
        contenders = {kind: partial(turn, f"{kind} {size} {rounds}") for kind in (CHANNEL, SEALED, CIPHER)}
        turns = interleaved(contenders, repeats)
    return {kind: [taken / rounds for taken in seconds] for kind, seconds in turns.items()}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that hosts and processes are cleared away then too
    main()

"""A star of links, or torch.distributed's tree? The same models through both, by number of machines and speed of links:

    python -m bench.star [--machines 8 16 32] [--megabits 100] [--repeats 5]

- tree: Gloo's broadcast and gather over one group of all ranks, in which machines relay each other's model;
- star: our channel, a group of two for the server and every machine.

On one host, and with every rank a host of its own (a network namespace) behind a link that is limited each way. Nobody
trains. Needs root and iproute2.
"""

import argparse
from contextlib import ExitStack
from functools import partial

from tests.helpers.netns import hosts

from bench.exchange_ranks import CHANNEL, RAW, ranks
from bench.harness import Spread, interleaved, publish, ratio, table

ONE_HOST = 0
"""In place of a rate."""
ROUNDS = {ONE_HOST: 10}
SIZE = "small"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--megabits", type=int, nargs="*", default=[100])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows, figures = [], {}
    for megabits in (ONE_HOST, *arguments.megabits):
        for machines in arguments.machines:
            seconds = measure(machines, megabits, arguments.repeats)
            tree, star = (Spread.of([1e3 * second for second in seconds[kind]]) for kind in (RAW, CHANNEL))
            where = f"{megabits} Mbit/s" if megabits else "one host"
            rows.append([where, 1 + machines, tree, star, ratio(seconds[CHANNEL], seconds[RAW])])
            figures[f"{where}, {1 + machines} ranks"] = seconds
    text = "A model of 1.85 MB down and up; milliseconds a round, median (lowest to highest) of "
    text += f"{arguments.repeats} turns. One host has two cores for all ranks."
    publish("star", f"{text}\n\n{table(['links', 'ranks', 'tree', 'star', 'star / tree'], rows)}", [], figures)


def measure(machines: int, megabits: int, repeats: int) -> dict[str, list[float]]:
    """Seconds a round."""
    rounds = ROUNDS.get(megabits, 1)
    with ExitStack() as stack:
        places = stack.enter_context(hosts(1 + machines)) if megabits else []
        for place in places:
            place.limit(megabits)
        turn = stack.enter_context(ranks(machines, places))
        turns = interleaved({kind: partial(turn, f"{kind} {SIZE} {rounds}") for kind in (RAW, CHANNEL)}, repeats)
    return {kind: [taken / rounds for taken in seconds] for kind, seconds in turns.items()}


if __name__ == "__main__":
    main()

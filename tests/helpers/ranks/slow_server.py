"""A rank of a job whose server takes its time to load the graph: `torchrun … slow_server.py SECONDS [overrides]`."""

import os
import sys
import time

from llcg_dist import train

SECONDS = float(sys.argv[1])
slept = False


def load_slowly(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook of Python's: the first file of the full graph that this rank opens takes long."""
    global slept
    if event == "open" and not slept and "/global/" in str(arguments[0]):
        slept = True
        time.sleep(SECONDS)


sys.addaudithook(load_slowly)
code = train.main(sys.argv[2:])
sys.stdout.flush()
os._exit(code)

"""A rank of a job whose server takes its time: `torchrun … slow_server.py SECONDS [overrides]`."""

import os
import sys
import time
from typing import Any

from llcg_dist import train
from llcg_dist.job import run

SECONDS = float(sys.argv[1])
find_store = run.ensure_store


def find_store_slowly(*arguments: Any, **keywords: Any) -> Any:
    time.sleep(SECONDS)
    return find_store(*arguments, **keywords)


run.ensure_store = find_store_slowly
code = train.main(sys.argv[2:])
sys.stdout.flush()
os._exit(code)

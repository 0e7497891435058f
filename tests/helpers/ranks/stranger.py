"""A stranger who reaches the store of a job: python stranger.py WHERE MARKER.

It waits for the file WHERE, which holds host and port. Then it puts pickles into every value that it finds there,
addresses among them, poisons beats, forbids the job to start again, greets as a rank, and puts older values back, until
it is stopped. Unpickling one of its pickles makes the folder MARKER-PLACE. Writes a line after each pass.
"""

import base64
import os
import pickle
import sys
import time

import torch.distributed as dist

PASSES_APART_SECONDS = 0.4


class Payload:
    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.makedirs, (self._path, 0o777, True)


def main(where: str, marker: str) -> None:
    while not os.path.exists(where):
        time.sleep(0.02)
    with open(where) as file:
        host, port = file.read().split()
    store = dist.TCPStore(host, int(port), is_master=False, wait_for_workers=False)
    recorded: dict[str, bytes] = {}
    while True:
        keys = [key.removeprefix("/") for key in store.list_keys()]
        for key in keys:
            value = store.get(key)
            if value.isdigit():  # a counter: the store itself would fail over anything else
                continue
            forged = base64.b64encode(pickle.dumps(Payload(f"{marker}-{key.replace('/', '-')}")))
            if "beat" in key:
                forged = b"1"
            elif key in recorded and value != recorded[key]:
                forged = recorded[key]
            recorded.setdefault(key, value)
            store.set(key, forged)  # type: ignore[arg-type]
        store.set("llcg/refused", "a stranger says so")
        store.set("llcg/hello/1", "a stranger")
        sys.stdout.write(f"{len(keys)} keys\n")
        sys.stdout.flush()
        time.sleep(PASSES_APART_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])

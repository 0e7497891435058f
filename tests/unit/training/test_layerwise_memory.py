"""Full-graph evaluation in chunks has bounded memory: measured under a limit that all nodes at once would break."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from llcg_dist.data.csr import undirected_csr

MEASURE = """
import os, resource, sys, traceback
import numpy as np, torch
from llcg_dist.config.model import ModelConfig
from llcg_dist.training.layerwise import FullGraphForward
from llcg_dist.data.graph import Graph
from tests.helpers.models import staged_model

folder, chunk = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
arrays = {name: np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "features")}
n = len(arrays["indptr"]) - 1
graph = Graph(**arrays, labels=np.zeros(n, np.int64), split=np.ones(n, np.int8), num_classes=4)
small = Graph(np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32), np.zeros((2, graph.num_features), np.float32),
              np.zeros(2, np.int64), np.ones(2, np.int8), 4)


def evaluate_within_limit(model_name, room_mb):
    model = staged_model(ModelConfig(name=model_name, hidden=32), graph.num_features, 4)
    FullGraphForward(small, model, chunk).logits()  # what libraries allocate once is not what is measured
    chunked, at_once = (FullGraphForward(graph, model, size, recalibrate=True) for size in (chunk, n))
    held = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData:"))
    limit = held + room_mb * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # private memory; mapped files do not count
    assert chunked.logits().isfinite().all()
    print(model_name, "in chunks: done", flush=True)
    try:
        at_once.logits()
    except RuntimeError as error:
        print(model_name, "at once: no room" if "allocate" in str(error) else error, flush=True)


for argument in sys.argv[3:]:  # in children: imports take seconds, and a limit cannot be taken back
    if (child := os.fork()) == 0:
        model_name, room_mb = argument.split("=")
        try:
            evaluate_within_limit(model_name, int(room_mb))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_memory_is_two_states_and_a_chunk(tmp_path: Path) -> None:
    """120,000 nodes: 123 MB of features, 480,000 edges in both directions; a hidden state is 15 MB.

    Room for the states of two layers (twice 15 MB; appnp keeps h0 beside h: twice 31) and for a chunk of 2,000 nodes,
    but not for 123 MB, a row of the features' width for every node: all nodes at once must find no room.
    """
    rng = np.random.default_rng(0)
    n = 120_000
    indptr, indices = undirected_csr(rng.integers(n, size=480_000), rng.integers(n, size=480_000), n)
    features = rng.standard_normal((n, 256), dtype=np.float32)
    for name, array in (("indptr", indptr), ("indices", indices), ("features", features)):
        np.save(tmp_path / f"{name}.npy", array)
    command = [sys.executable, "-c", MEASURE, str(tmp_path), "2000", "sage=70", "appnp=100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    expected = [f"{model} {what}" for model in ("sage", "appnp") for what in ("in chunks: done", "at once: no room")]
    assert done.stdout.splitlines() == expected, done.stderr

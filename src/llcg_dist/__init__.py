"""Learn Locally, Correct Globally (LLCG, ICLR 2022) as a multi-process trainer on torch.distributed."""

import os

from llcg_dist import lazy_imports

__version__ = "0.1.0"

# DGL otherwise prints a notice and writes ~/.dgl/config.json at its first import.
os.environ.setdefault("DGLBACKEND", "pytorch")

lazy_imports.install()

"""What a rank imports before it begins, looked at in a process of its own."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
import llcg_dist.train
names = ("pandas", "pyarrow", "matplotlib", "ogb", "tensorboard", "mlflow", "wandb")
before = [name for name in names if name in sys.modules]
from torch_geometric.datasets import Planetoid
print(json.dumps([before, Planetoid.__name__, "pandas" in sys.modules]))
"""


def test_a_rank_loads_no_logger_and_no_library_for_reading_data_sets_until_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == [[], "Planetoid", True]

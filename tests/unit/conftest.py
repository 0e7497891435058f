"""The gate draws the same examples every time; `pytest --hypothesis-profile fuzz` looks for new ones."""

import torch
from hypothesis import settings

settings.register_profile("gate", max_examples=60, deadline=None, derandomize=True, database=None)
settings.register_profile("fuzz", max_examples=2000, deadline=None)
settings.load_profile("gate")

torch.set_num_threads(1)

"""A rank of a job with a method of the user's own: `torchrun … -m tests.helpers.ranks.own_method [overrides]`."""

import os
import sys

from llcg_dist import train
from tests.helpers.own_method import register

register()
code = train.main(sys.argv[1:])
sys.stdout.flush()
os._exit(code)

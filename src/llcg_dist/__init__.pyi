from llcg_dist.algorithms.base import Algorithm as Algorithm
from llcg_dist.api.fit import fit as fit
from llcg_dist.api.run import Run as Run
from llcg_dist.api.run import load as load
from llcg_dist.data.graph import Graph as Graph
from llcg_dist.errors import TrainingError as TrainingError
from llcg_dist.errors import UserError as UserError

__all__ = ["Algorithm", "Graph", "Run", "TrainingError", "UserError", "__version__", "fit", "load"]
__version__: str

"""What a user's own model costs in memory, from a dry run of it: nothing else tells what its layers keep."""

import numpy as np
import torch
from torch import Tensor

from llcg_dist.config.schema import Config
from llcg_dist.config.train import EvaluateConfig
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.errors import UserError, first_line
from llcg_dist.models import build_model
from llcg_dist.models.own import EdgeIndexModel, require_logits
from llcg_dist.models.samplers import sampler_for
from llcg_dist.sampling.block import EDGES_PER_NODE
from llcg_dist.sampling.minibatch import Sample

_SEEDS = 64
_FANOUT = 10
_WITH_GRADIENTS = 1.5
"""A backward pass holds the gradients of some activations beside those that were kept for it."""
_BYTES_PER_EDGE = 40
"""Memory of a subgraph for each edge: its block and its edge_index."""
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}
"""What sparse tensors, which have no storage of their own, keep their numbers in: names of methods."""


class DryRunCosts:
    """Memory of a model by the bytes that its forward pass keeps for every node and edge of a small batch."""

    def __init__(self, config: Config, graph: Graph) -> None:
        """Builds the model and runs it once on a batch of this graph."""
        self.model = build_model(config.model, graph.num_features, graph.num_classes)
        self._target = str(config.model.target)
        self._num_features, self._num_classes = graph.num_features, graph.num_classes
        training = graph.nodes_in(TRAIN)
        seeds = np.random.default_rng(0).choice(training, min(_SEEDS, len(training)), replace=False)
        sample = sampler_for(self.model, graph, _FANOUT).sample(seeds, seed=0)
        self._per_row = self._kept_bytes(sample, graph) / (len(sample.nodes) + sample.num_edges)
        self._exact_hops = self.model.exact_hops

    @property
    def is_exact(self) -> bool:
        """Whether a number of hops gives a node's exact output."""
        return not isinstance(self.model, EdgeIndexModel) or self.model.receptive_field.exact_hops is not None

    def model_bytes(self) -> int:
        """Weights, gradients, Adam's two moments, and as much again for flat copies."""
        return 8 * sum(tensor.nbytes for tensor in self.model.state_dict().values())

    def step_bytes(self, batch: BatchSize) -> int:
        edges = batch.edges[0] if self.model.reads_subgraph else sum(batch.edges)
        kept = self._per_row * (batch.inputs + edges) * _WITH_GRADIENTS
        return round(kept) + batch.inputs * self._num_features * 4 + edges * _BYTES_PER_EDGE

    def evaluation_bytes(self, num_nodes: int, num_edges: int, evaluate: EvaluateConfig) -> int:
        """One batch with all its neighbours, and the logits of every node."""
        edges = min(2 * num_edges, EDGES_PER_NODE * evaluate.chunk)
        rows = min(num_nodes, evaluate.chunk + edges)
        work = self._per_row * (rows + edges) + rows * self._num_features * 4 + edges * _BYTES_PER_EDGE
        return round(work) + num_nodes * self._num_classes * 4

    def _kept_bytes(self, sample: Sample, graph: Graph) -> int:
        """Bytes of the tensors that the forward pass keeps for the backward pass, weights and features apart."""
        x = torch.from_numpy(graph.features[sample.nodes.numpy()]).float()
        known = {tensor.untyped_storage().data_ptr() for tensor in (x, *self.model.parameters())}
        kept = dict[int, int]()

        def note(tensor: Tensor) -> Tensor:
            for part in _strided(tensor):
                storage = part.untyped_storage()
                if storage.data_ptr() not in known:
                    kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            output = self._output(x, sample)  # alive until all is counted: no address is used twice
        return sum(kept.values()) + int(output.nbytes)

    def _output(self, x: Tensor, sample: Sample) -> Tensor:
        """The logits [seeds, C]; UserError where the user's forward fails, or returns something else."""
        try:
            output: Tensor = self.model.train()(x, sample.blocks)
        except UserError:
            raise
        except Exception as error:
            what = f"raised {type(error).__name__} in the dry run, on a batch of {len(sample.seeds)} nodes"
            raise UserError(f"model.target={self._target}: {what}: {first_line(error)}") from error
        require_logits(self._target, output, len(sample.seeds), self._num_classes)
        return output


def _strided(tensor: Tensor) -> list[Tensor]:
    """The tensors with a storage that hold its numbers."""
    if tensor.layout == torch.strided:
        return [tensor]
    return [getattr(tensor, name)() for name in _PARTS.get(tensor.layout, ())]

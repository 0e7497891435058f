"""Views: the topology, features, labels and training nodes that gradient steps are computed on.

A view numbers nodes as its topology does. Views differ in where feature rows come from: a graph that is all local, a
part with a stored halo of remote nodes (subgraph_approx), or the full topology with features that other machines send
on request (ggs, full_sync).
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from llcg_dist.data.csr import Topology
from llcg_dist.data.derived import FullTopology
from llcg_dist.data.feature_rows import LazyRows, Rows
from llcg_dist.data.graph import TRAIN, Graph, induced_topology
from llcg_dist.data.rows import Array
from llcg_dist.data.upload import upload


class View(Protocol):
    task: str
    num_features: int
    num_classes: int
    topology: Topology
    train_nodes: Array
    """The nodes that mini-batches are drawn from."""

    def features(self, nodes: Tensor) -> Rows:
        """[len(nodes), F]"""

    def labels(self, nodes: Tensor) -> Tensor:
        """[len(nodes)] or [len(nodes), C]; defined for training nodes."""

    @property
    def feature_bytes(self) -> int | None:
        """Of the table that all rows come from; None where they come from elsewhere."""

    def keep_features_on(self, device: str) -> None:
        """From here on the table is in this device's memory, and rows are gathered there."""


class GraphView:
    """A graph that is all local: the server's full graph, or a part without its cut edges."""

    def __init__(self, graph: Graph, train_nodes: Array | None = None) -> None:
        self.task, self.num_features, self.num_classes = graph.task, graph.num_features, graph.num_classes
        self.topology = Topology(graph.indptr, graph.indices)
        self.train_nodes = graph.nodes_in(TRAIN) if train_nodes is None else train_nodes
        self._features, self._labels = torch.from_numpy(graph.features), torch.from_numpy(graph.labels)

    def features(self, nodes: Tensor) -> Rows:
        return LazyRows(self._features, nodes)

    def labels(self, nodes: Tensor) -> Tensor:
        return self._labels[nodes]

    @property
    def feature_bytes(self) -> int | None:
        return self._features.nbytes

    def keep_features_on(self, device: str) -> None:
        self._features = upload(self._features, device)


class SubgraphView(GraphView):
    """The subgraph of the full `graph` induced by `nodes`: what a machine reads, rebuilt at the server.

    The first `num_own` nodes are the part's own and may be trained on; the others are its halo. Features and labels are
    not copied.
    """

    def __init__(self, graph: Graph, nodes: Array, num_own: int) -> None:
        super().__init__(graph, train_nodes=np.flatnonzero(graph.split[nodes[:num_own]] == TRAIN))
        self.topology = induced_topology(graph, nodes)
        self._nodes = torch.from_numpy(nodes)

    def features(self, nodes: Tensor) -> Rows:
        return super().features(self._nodes.index_select(0, nodes))

    def labels(self, nodes: Tensor) -> Tensor:
        return super().labels(self._nodes[nodes])


class HaloView(GraphView):
    """A part (nodes 0..n-1) and its halo of remote nodes (n and up), which are sampled but never trained on."""

    def __init__(self, part: Graph, topology: Topology, halo_features: Array) -> None:
        super().__init__(part)
        self.topology = topology
        self._num_own = part.num_nodes
        self._halo: Tensor | None = torch.from_numpy(halo_features)

    @property
    def feature_bytes(self) -> int | None:
        return self._features.nbytes + (0 if self._halo is None else self._halo.nbytes)

    def keep_features_on(self, device: str) -> None:
        """One table, in the numbering of the view."""
        assert self._halo is not None
        self._features, self._halo = upload(torch.cat([self._features, self._halo]), device), None

    def features(self, nodes: Tensor) -> Rows:
        if self._halo is None:
            return super().features(nodes)
        rows = torch.empty(len(nodes), self.num_features, dtype=self._features.dtype)
        own = nodes < self._num_own
        rows[own] = self._features[nodes[own]]
        rows[~own] = self._halo[nodes[~own] - self._num_own]
        return rows


class RowSource(Protocol):
    """Fetches rows of features that other machines hold."""

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        """wanted[q] holds row numbers within part q, none for the own part; returns [len(wanted[q]), F] for each q."""


class GlobalView(GraphView):
    """The full topology, the features and labels of the own part, and the features of other parts on request.

    `index` is the own part's number, `nodes` [n] the global numbers of its nodes.
    """

    def __init__(self, part: Graph, index: int, nodes: Array, full: FullTopology, rows: RowSource) -> None:
        super().__init__(part, train_nodes=nodes[part.nodes_in(TRAIN)])
        self.topology = full.topology
        self._part, self._rows = index, rows
        self._owner, self._position = torch.from_numpy(full.owner), torch.from_numpy(full.position)
        self._num_parts = int(self._owner.max()) + 1

    @property
    def feature_bytes(self) -> int | None:
        return None

    def features(self, nodes: Tensor) -> Tensor:
        owner, position = self._owner[nodes], self._position[nodes]
        order = owner.argsort(stable=True)
        by_part = list(position[order].split(torch.bincount(owner, minlength=self._num_parts).tolist()))
        own = self._features.index_select(0, by_part[self._part])
        by_part[self._part] = by_part[self._part][:0]
        fetched = self._rows.fetch(by_part)
        fetched[self._part] = own
        rows = torch.empty(len(nodes), self.num_features, dtype=self._features.dtype)
        return rows.index_copy_(0, order, torch.cat(fetched))

    def labels(self, nodes: Tensor) -> Tensor:
        return self._labels[self._position[nodes]]

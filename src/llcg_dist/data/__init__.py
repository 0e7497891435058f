"""From a data set to a part on a machine's disk: Graph, partitioning, store."""

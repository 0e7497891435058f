"""Graphs: loading a dataset, partitioning it, the partition store on disk, and the views that training reads."""

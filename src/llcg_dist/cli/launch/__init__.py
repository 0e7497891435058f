"""Starts the ranks of a job: on one host, on several hosts, or in a SLURM allocation."""

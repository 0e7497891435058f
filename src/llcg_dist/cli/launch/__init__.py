"""Starting the ranks of a job: on one host, on several, under SLURM."""

"""Settings: the typed schema behind conf/, the rules they must keep, their composition with Hydra, and comparisons."""

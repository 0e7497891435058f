"""Hydra's settings, found by the package wherever it is installed."""

"""The mathematics of a round: schedule, gradient steps, averaging, correction, evaluation. No network, no DGL."""

"""The mathematics of a round: schedule, local and correction steps, averaging, evaluation. No network, no DGL."""

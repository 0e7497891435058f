"""The mathematics of a round: local steps, loss, schedules, averaging, correction, evaluation. No network."""

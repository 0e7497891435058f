"""The records of a run: rows of metrics, summary, saved models, console output, experiment loggers."""

"""What a run leaves behind: rows of metrics, summary, models, the console, loggers."""

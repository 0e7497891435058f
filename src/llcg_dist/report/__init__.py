"""`llcg report`: reads the records of runs and writes tables, figures and an HTML page. Imports no torch."""

from llcg_dist.report.page import write_report
from llcg_dist.report.runs import Run, find_runs

__all__ = ["Run", "find_runs", "write_report"]

"""`llcg key [FILE]`: makes the key that the hosts of a job share."""

from pathlib import Path

from llcg_dist.comm.job_key import write_key
from llcg_dist.errors import UserError
from llcg_dist.records.console import say


def key(arguments: list[str]) -> int:
    """Writes a key and says what to do with it; returns the exit code."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        raise UserError(f"key: takes one FILE, not {' '.join(arguments)}")
    path = Path(arguments[0] if arguments else "job.key")
    write_key(path)
    say(f"key in {path}: copy it to every host of the job (scp -p), and add cluster.key_file={path} to its settings")
    return 0

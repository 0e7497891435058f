"""`llcg key [FILE]`: makes the key that the hosts of a job share."""

from pathlib import Path

from llcg_dist.comm.job_key import write_key
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

USAGE = """usage: llcg key [FILE]

Writes a fresh key to FILE (job.key by default), which its owner alone can read; a file that exists is kept. A job on
several hosts needs one: copy it to every host (scp -p), and add cluster.key_file=FILE to the settings. Make one for
every job: values that were sealed in an earlier job with the same key are authentic in a later one."""


def key(arguments: list[str]) -> int:
    """Writes a key and says what to do with it; returns the exit code."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        raise UserError(f"key: takes one FILE, not {' '.join(arguments)}")
    path = Path(arguments[0] if arguments else "job.key")
    write_key(path)
    say(f"key in {path}: copy it to every host of the job (scp -p), and add cluster.key_file={path} to its settings")
    return 0

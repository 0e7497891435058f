"""Training within the calling process (cluster.backend=loopback), which gets its own state back afterwards."""

from llcg_dist.cli.train import prepare_job
from llcg_dist.config.schema import Config
from llcg_dist.errors import PeerLostError, ProtocolError, TrainingError, os_error_line
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.process import Rank
from llcg_dist.job.restored_state import state_restored
from llcg_dist.job.run import run
from llcg_dist.job.run_dir import finished_line
from llcg_dist.records.console import say


def train_here(config: Config) -> None:
    """Checks a job of one process, and runs it unless it is finished already; run_dir must be set."""
    with state_restored():
        num_processes, run_dir = prepare_job(config)
        if num_processes == 0:
            say(finished_line(run_dir))
            return
        try:
            run(config, Rank())
        except (PeerLostError, ProtocolError) as error:
            raise TrainingError(str(error)) from error
        except OSError as error:
            raise TrainingError(os_error_line(error)) from error
        finally:
            CheckpointWriter.finish_all()  # after an interrupt, too, the run can go on

"""The exit codes of the command line: 0 done, 2 the user's mistake, 130 after SIGINT, 1 anything else."""

from collections.abc import Callable

from llcg_dist.errors import TrainingError, UserError, os_error_line
from llcg_dist.records.console import end_progress_line, print_error


def exit_code_of(command: Callable[[], int]) -> int:
    """Runs a command and returns its exit code; errors that it is expected to raise become one line on stderr."""
    try:
        return command()
    except UserError as error:
        print_error(str(error))
        return 2
    except MemoryError as error:
        print_error(f"not enough memory ({error}); use a smaller graph (dataset.subset), or a host with more")
        return 2
    except TrainingError as error:
        print_error(str(error))
        return 1
    except BrokenPipeError:  # the reader of a pipe has closed it, which is no error
        raise
    except OSError as error:
        print_error(os_error_line(error))
        return 1
    except KeyboardInterrupt:
        end_progress_line()
        print_error("stopped by SIGINT")
        return 130

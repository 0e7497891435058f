"""Where ranks write: their output under the run's folder, and why they ended to a folder of the launcher's own."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsDest, Std


class LogFiles(DefaultLogsSpecs):
    """torchrun's files, but with error files that do not lie on the run's disk: it may be full, and then torch leaves
    an empty one, on which its agent fails, and the launcher does not know that rank 0 has told the user."""

    def __init__(self, log_dir: Path, redirects: Mapping[int, Std]) -> None:
        super().__init__(log_dir=str(log_dir), redirects=dict(redirects))
        self._folder = tempfile.TemporaryDirectory(prefix="llcg-errors-")  # removed with this object

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        files = super().reify(envs)
        for rank, variables in envs.items():
            error_file = Path(self._folder.name) / str(rank) / "error.json"
            error_file.parent.mkdir(exist_ok=True)
            error_file.unlink(missing_ok=True)  # of the attempt before
            variables["TORCHELASTIC_ERROR_FILE"] = files.error_files[rank] = str(error_file)
        return files

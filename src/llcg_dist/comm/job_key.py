"""The key of a job: 32 random bytes that its processes share and nobody else has; how it is kept and handed on.

A launcher hands the key to its ranks through a file in its own memory, which has no name in any folder: they open it
under /proc/PID/fd, where the kernel lets in the launcher's user alone. What ranks inherit is that path.
"""

import os
import secrets
import stat
from pathlib import Path

from llcg_dist.config.cluster import ClusterConfig
from llcg_dist.errors import UserError

KEY_BYTES = 32
KEY_VARIABLE = "LLCG_JOB_KEY"
"""Environment variable: the path under which a rank opens the key that its launcher holds."""


def new_key() -> bytes:
    """A fresh key."""
    return secrets.token_bytes(KEY_BYTES)


def write_key(path: Path) -> None:
    """Writes a fresh key to a file that its owner alone can read; one that exists is never overwritten."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UserError(f"{path}: exists, and a key is never overwritten; choose another name, or remove it") from None
    except OSError as error:
        raise UserError(f"{path}: the key cannot be written ({error.strerror})") from None
    with os.fdopen(handle, "w") as file:
        os.fchmod(handle, 0o600)  # whatever the umask is
        file.write(new_key().hex() + "\n")


def replace_key(path: Path) -> None:
    """Writes a fresh key in place of an earlier one: for a job that starts again."""
    path.unlink(missing_ok=True)
    write_key(path)


def read_key(path: str) -> bytes:
    """The key in the file that cluster.key_file names; one that others can read is refused."""
    where = f"cluster.key_file={path}"
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(4 * KEY_BYTES)
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror}); `llcg key {path}` makes one") from None
    if mode & 0o077:
        raise UserError(f"{where}: others than its owner may use it (mode {mode:o}); chmod 600 {path}, or make another")
    key = _decoded(content)
    if key is None:
        raise UserError(f"{where}: holds no key; `llcg key FILE` makes one")
    return key


def launchers_key(cluster: ClusterConfig) -> bytes | None:
    """The key with which a launcher on this host guards a job: from cluster.key_file, else a fresh one.

    None where cluster.sealed=false.
    """
    if not cluster.sealed:
        return None
    return read_key(cluster.key_file) if cluster.key_file else new_key()


def hold_key(key: bytes | None) -> str:
    """Puts the key into a file in this process's memory; the path under which its user's processes can open it.

    The path is empty where there is no key.
    """
    if key is None:
        return ""
    handle = os.memfd_create("llcg-job-key")
    os.write(handle, key.hex().encode())
    return f"/proc/{os.getpid()}/fd/{handle}"


def ranks_key(cluster: ClusterConfig) -> bytes | None:
    """The key of the job that this rank belongs to: its launcher's, else cluster.key_file's.

    None where cluster.sealed=false, and under a launcher that is not ours where cluster.key_file is not given.
    """
    held = os.environ.get(KEY_VARIABLE)
    if not cluster.sealed:
        return None
    if not held:
        return read_key(cluster.key_file) if cluster.key_file else None
    try:
        key = _decoded(Path(held).read_bytes())
    except OSError as error:
        raise UserError(f"{KEY_VARIABLE}={held}: the launcher's key cannot be read ({error.strerror})") from None
    if key is None:
        raise UserError(f"{KEY_VARIABLE}={held}: holds no key; the variable is set by llcg's launchers alone")
    return key


def _decoded(content: bytes) -> bytes | None:
    """The key in a file's content; None where there is none."""
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        return None
    return key if len(key) == KEY_BYTES else None

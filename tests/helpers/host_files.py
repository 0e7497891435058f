"""The files of a host that are read for what it has: /proc and /sys, below a folder."""

from pathlib import Path


def host_files(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root

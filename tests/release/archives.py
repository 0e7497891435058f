"""Checks of a source distribution and a wheel before anybody installs them.

    python -m tests.release.archives CHECKOUT SDIST WHEEL

What an index refuses or shows wrongly is found here: metadata that break a rule of the core metadata specification, a
description that is not the README, files that are missing or should not be there.
"""

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from packaging.metadata import Metadata

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
_ADDED = ("src/llcg_dist.egg-info/", "PKG-INFO")
"""What setuptools adds; it also adds a section to setup.cfg."""


def checkout_files(checkout: Path) -> dict[str, bytes]:
    """{path: content} of the files that the archives were built from."""
    found = {path.relative_to(checkout).as_posix(): path for path in checkout.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(_ADDED)}


def sdist_files(path: Path) -> dict[str, bytes]:
    """The same of what it holds below its one folder."""
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        content = {member.name: archive.extractfile(member) for member in members}
        read = {name.partition("/")[2]: file.read() for name, file in content.items() if file is not None}
    return {name: text for name, text in read.items() if not name.startswith(_ADDED)}


def sdist_metadata(path: Path) -> bytes:
    with tarfile.open(path) as archive:
        [member] = [
            member for member in archive.getmembers() if member.name.count("/") == 1 and "PKG-INFO" in member.name
        ]
        return cast(IO[bytes], archive.extractfile(member)).read()


def wheel_files(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def wheel_metadata(path: Path) -> bytes:
    [content] = [content for name, content in wheel_files(path).items() if name.endswith(".dist-info/METADATA")]
    return content


def findings(checkout: Path, sdist: Path, wheel: Path) -> Iterator[str]:
    """What is wrong with them, a line each."""
    files, source = checkout_files(checkout), sdist_files(sdist)
    changed = {name for name, content in files.items() if source.get(name, content) != content} - {"setup.cfg"}
    yield from (f"sdist: lacks {name}" for name in sorted(files.keys() - source.keys()))
    yield from (f"sdist: has {name}" for name in sorted(source.keys() - files.keys()))
    yield from (f"sdist: has another {name}" for name in sorted(changed))
    described = {"sdist": sdist_metadata(sdist), "wheel": wheel_metadata(wheel)}
    if described["sdist"] != described["wheel"]:
        yield "sdist and wheel differ in their metadata"
    for kind, content in described.items():
        yield from (f"{kind}: {problem}" for problem in metadata_findings(content, files["README.md"].decode()))
    for target in LINK.findall(source["README.md"].decode()):
        if not any(name == target or name.startswith(f"{target.rstrip('/')}/") for name in source):
            yield f"sdist: README.md links to {target}, which is not there"


def metadata_findings(content: bytes, readme: str) -> Iterator[str]:
    """What an index would refuse, or show wrongly."""
    try:
        metadata = Metadata.from_email(content, validate=True)
    except ExceptionGroup as group:
        yield from (str(error) for error in group.exceptions)
        return
    if metadata.description_content_type != "text/markdown":
        yield f"the description is {metadata.description_content_type}, not Markdown"
    if (metadata.description or "").strip() != readme.strip():
        yield "the description is not README.md"
    if metadata.license_expression != "MIT" and metadata.license != "MIT":
        yield "no licence"
    for name in ("summary", "keywords", "classifiers", "requires_python", "license_files"):
        if not getattr(metadata, name):
            yield f"no {name}"


def main() -> None:
    sys.exit("\n".join(findings(*map(Path, sys.argv[1:]))) or 0)


if __name__ == "__main__":
    main()

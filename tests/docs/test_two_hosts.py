"""The blocks of "Two hosts" in docs/guides/hosts.md, pasted on two hosts: namespaces with folders of their own."""

import json
import os
from pathlib import Path

from tests.helpers.jobs import REPOSITORY, finish, start
from tests.helpers.netns import hosts
from tests.helpers.pages import Block, blocks_of

PAGE = REPOSITORY / "docs" / "guides" / "hosts.md"
SCP = '#!/bin/bash\narguments=("$@")\ncp -rp "${arguments[@]:1:$#-2}" "$OTHER_HOST/"\n'
"""Copies to the folder of the other host what `scp -x FILE... host2:` would."""


def blocks_below(heading: str) -> list[Block]:
    lines = PAGE.read_text().splitlines()
    first = lines.index(heading) + 1
    last = next((at for at, line in enumerate(lines) if at > first and line.startswith("## ")), len(lines))
    return [block for block in blocks_of(PAGE) if first < block.line <= last and block.language == "bash"]


def test_a_second_host_joins_as_the_page_says(tmp_path: Path) -> None:
    blocks = blocks_below("## Two hosts")
    before = [block.text for block in blocks if "llcg multinode" not in block.text]
    on_hosts = [block.text for block in blocks if "llcg multinode" in block.text]
    assert (len(before), len(on_hosts)) == (2, 2)
    folders = [tmp_path / "host1", tmp_path / "host2"]
    for folder in (*folders, tmp_path / "bin"):
        folder.mkdir()
    (tmp_path / "bin" / "scp").write_text(SCP)
    (tmp_path / "bin" / "scp").chmod(0o755)
    with hosts(2) as two:
        path = f"export PATH={tmp_path / 'bin'}:$PATH OTHER_HOST={folders[1]}\n"
        prepared = finish(start(["bash", "-euo", "pipefail", "-c", path + "".join(before)], folders[0]))
        assert prepared.code == 0, prepared.err
        jobs = [
            start(host.command("bash", "-euo", "pipefail", "-c", text), folder, os.environ)
            for host, folder, text in zip(two, folders, on_hosts, strict=True)
        ]
        outcomes = [finish(job) for job in jobs]
    assert [outcome.code for outcome in outcomes] == [0, 0], [outcome.err for outcome in outcomes]
    summary = json.loads((folders[0] / "runs" / "two" / "summary.json").read_text())
    assert summary["num_machines"] == 2
    assert not list(folders[1].rglob("global"))

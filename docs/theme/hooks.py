"""What MkDocs adds to the pages of docs/ while it builds the site: the reference of the settings, and usages."""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from llcg_dist.cli.usage import USAGES
from settings_page import settings_page  # MkDocs imports this file with its folder in the path

SETTINGS = "reference/settings.md"
_USAGE = re.compile(r"^<!-- usage: (\w+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are generated."""
    files.append(File.generated(config, SETTINGS, content=settings_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts what `llcg COMMAND --help` says in place of `<!-- usage: COMMAND -->`."""
    return _USAGE.sub(lambda found: f"```text\n{USAGES[found[1]]}\n```", markdown)

"""What MkDocs adds to the pages of docs/ while it builds the site: the reference of the settings, and usages."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from llcg_dist.cli.help import with_usages
from settings_page import settings_page  # MkDocs imports this file with its folder in the path

SETTINGS = "reference/settings.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are generated."""
    files.append(File.generated(config, SETTINGS, content=settings_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Puts the usage of commands where a page asks for it."""
    return with_usages(markdown)

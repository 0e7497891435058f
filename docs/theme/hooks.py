"""What MkDocs adds to the pages of docs/ while it builds the site: the reference of the settings."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SETTINGS = "reference/settings.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are generated."""
    files.append(File.generated(config, SETTINGS, content="# Settings\n\nGenerated from the schema.\n"))
    return files

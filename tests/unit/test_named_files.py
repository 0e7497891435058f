"""Every file, folder and module of this repository that a docstring, comment, message or page names is there."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "llcg_dist"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())

PROGRAMS = [path for room in ("src", "bench", "studies", "tests") for path in sorted((ROOT / room).rglob("*.py"))]
PROGRAMS.remove(Path(__file__).resolve())  # it names what is missing
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "launch/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
PRESETS = sorted((ROOT / "conf").rglob("*.yaml"))
SCRIPTS = [ROOT / "Makefile", ROOT / ".ci/run", *sorted(set((ROOT / "launch").iterdir()) - set(PAGES))]

# Names with other endings (.json, .csv, .npy) are those of runs and of the user's files, unless a folder of ours leads.
ENDINGS = ("py", "md", "yaml", "sh", "sbatch", "cfg", "toml", "css", "js", "svg", "png")
FILE = re.compile(
    rf"(?<![\w{{}}<>*$./-])(?:(?:[\w.-]+/)*[\w-]+\.(?:{'|'.join(ENDINGS)})"
    r"|(?:bench|conf|docs|launch|src|studies|tests)/(?:[\w.-]+/)*[\w-]+\.\w+)\b(?![\w*({/-])"
)
FOLDER = re.compile(r"`((?:[a-z_]\w*/)+)`")
MEMBER = re.compile(rf"(?<![\w./-])((?:{'|'.join(ROOMS)})/\w+)\.(?!(?:{'|'.join(ENDINGS)}|csv)\b)(\w+)")
MODULE = re.compile(r"(?<![\w./-])(?:llcg_dist|bench|studies|tests)(?:\.[A-Za-z_]\w*)+")
WRITES = re.compile(r'^```\w+ title="([^"]+)"', re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")

WRITTEN = {
    *("config.yaml", "multirun.yaml", "optimization_results.yaml"),  # in the folder of a run or of a sweep
    *("curves.png", "report/curves.png", "comparison.md", "table.md", "tables.md"),  # by reports, loggers and studies
    *("tuning.md", "judgement.md", "map.md", "map.png"),  # by studies of when it pays
    *("checkpoints/", "logs/", "run_dir/logs/", "torchrun/"),  # below a run directory
    *("partitions/", "global/", "topology/"),  # of the parts
    *("raw/", "processed/"),  # below the folder of a published data set
    "reference/settings.md",  # of the site, from the schema
    *("llcg.sbatch", "job.sbatch", "DIR/model/mine.yaml", "DIR/experiment/x.yaml"),  # by the user, or for them
    *("presets/model/mine.yaml", "presets/experiment/mine.yaml"),
}
"""What programs write and no checkout holds."""


@cache
def texts(path: Path) -> tuple[tuple[int, str], ...]:
    """What a file says to people, by line number: of a program its comments and strings, of a preset its comments."""
    content = path.read_text()
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(content).readline)
        return tuple((t.start[0], t.string) for t in tokens if t.type in (tokenize.COMMENT, tokenize.STRING))
    lines = enumerate(content.splitlines(), 1)
    return tuple((at, line.partition("#")[2] if path.suffix == ".yaml" else line) for at, line in lines)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The same without the strings that a test hands to the code it tests, which name the user's files."""
    if not path.is_relative_to(ROOT / "tests") or path.suffix != ".py":
        yield from texts(path)
        return
    yield from ((at, text) for at, text in texts(path) if text.startswith("#"))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def is_there(name: str, path: Path) -> bool:
    """Below the root, the package, the folders of docs and launchers, or a folder around the file that names it."""
    folders = (ROOT, PACKAGE, ROOT / "docs", *(ROOT / "docs").iterdir(), ROOT / "launch", *path.parents)
    return name in WRITTEN | written_by(path) or any((folder / name).exists() for folder in folders)


@cache
def written_by(page: Path) -> frozenset[str]:
    """The files that a page has its reader write."""
    return frozenset(WRITES.findall(page.read_text()) if page.suffix == ".md" else ())


def missing_files(path: Path) -> Iterator[tuple[int, str]]:
    for at, text in prose(path):
        names = [match[0] for match in FILE.finditer(text)] + FOLDER.findall(text)
        yield from ((at, name) for name in names if not is_there(name, path) and not MEMBER.fullmatch(name))


def missing_members(path: Path) -> Iterator[tuple[int, str]]:
    """room/module.thing"""
    for at, text in prose(path):
        found = MEMBER.findall(text)
        yield from ((at, f"{m}.{thing}") for m, thing in found if not defines(PACKAGE / f"{m}.py", thing))


def missing_modules(path: Path) -> Iterator[tuple[int, str]]:
    """llcg_dist.room.module, or what that defines; also in the strings of tests, which name what they replace."""
    for at, text in texts(path):
        yield from ((at, dotted) for dotted in MODULE.findall(text) if not is_module_or_member(dotted))


def missing_targets(path: Path) -> Iterator[tuple[int, str]]:
    for at, text in texts(path):
        yield from ((at, target) for target in LINK.findall(text) if not is_target(path.parent / target))


def is_target(path: Path) -> bool:
    """A file, or the page that the site's build generates."""
    return path.exists() or path.resolve() == ROOT / "docs/reference/settings.md"


def is_module_or_member(dotted: str) -> bool:
    first, *names = dotted.split(".")
    place = PACKAGE if first == "llcg_dist" else ROOT / first
    if first == "llcg_dist" and names[0] in ("conf", "docs"):  # mapped to the folders of these names
        place, names = ROOT / names[0], names[1:]
    for name in names:
        if (place / name).is_dir():
            place = place / name
        elif (place / f"{name}.py").exists():
            place = place / f"{name}.py"
        else:
            file = place / "__init__.py" if place.is_dir() else place
            return defines(file, name) or defines(file.with_suffix(".pyi"), name)
    return True


@cache
def defines(path: Path, name: str) -> bool:
    if not path.exists():
        return False
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {
        alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assigned = {node.id for node in nodes if isinstance(node, ast.Name)}
    return name in imported | assigned | {getattr(node, "name", "") for node in nodes}


@pytest.mark.parametrize(
    ("missing", "paths"),
    [
        (missing_files, (*PROGRAMS, *PAGES, *PRESETS, *SCRIPTS)),
        (missing_members, (*PROGRAMS, *PAGES, *PRESETS, *SCRIPTS)),
        (missing_modules, (*PROGRAMS, *PAGES, *PRESETS, *SCRIPTS)),
        (missing_targets, PAGES),
    ],
)
def test_what_is_named_is_there(missing: Callable[[Path], Iterator[tuple[int, str]]], paths: tuple[Path, ...]) -> None:
    assert [f"{path.relative_to(ROOT)}:{at}: {name}" for path in paths for at, name in missing(path)] == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("see engine.py, `core/` and docs/nothing.md", ["engine.py", "docs/nothing.md", "core/"]),
        ("see job/server.py, `data/`, conf/config.yaml and docs/figures/demo.png", []),
        (
            "comm/nothing.Channel, comm/channel.Nothing, comm/channel.py",
            ["comm/nothing.Channel", "comm/channel.Nothing"],
        ),
        ("python -m bench.nothing; llcg_dist.core.means; llcg_dist.conf", ["bench.nothing", "llcg_dist.core.means"]),
        ("python -m llcg_dist.train; llcg_dist.errors.UserError; tests.golden.compare", []),
        ("[why](nothing.md#here), [how](README.md#use-it), [paper](https://example.org/nothing.md)", ["nothing.md"]),
    ],
)
def test_the_search_finds_what_is_missing(text: str, missing: list[str], tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(text)
    searches = (missing_files, missing_members, missing_modules, missing_targets)
    found = {name for search in searches for _, name in search(tmp_path / "README.md")}
    assert found == set(missing)

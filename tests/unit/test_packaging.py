"""The package as it is declared in setup.cfg: what it requires, which version it has, and what a built wheel holds."""

import ast
import configparser
import functools
import importlib.metadata
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import llcg_dist
from tests.helpers.wheel import build_sdist
from tests.release.archives import findings, metadata_findings, wheel_files, wheel_metadata
from tests.release.build import build, unpack

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "llcg_dist"
OWN = {"llcg_dist", "tests", "bench", "studies", "docs"}
ELSEWHERE = {
    "bench/flower_rounds.py": ("flwr", "bench/exchange.py"),
    "bench/peers/flower.py": ("flwr", "bench/flower_processes.py"),
}


def settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def requirements(section: str, key: str) -> list[str]:
    return [line for line in settings()[section][key].splitlines() if line and not line.startswith("#")]


def name_of(requirement: str) -> str:
    """The name of a distribution as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~\[;]", requirement.strip())[0]).lower()


def names(section: str, key: str) -> set[str]:
    return {name_of(requirement) for requirement in requirements(section, key)}


REQUIRED = names("options", "install_requires")
EXTRAS = {extra: names("options.extras_require", extra) for extra in settings()["options.extras_require"]}
OPTIONAL = set().union(*(declared for extra, declared in EXTRAS.items() if extra != "test"))


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """The distributions that an importable package may come from."""
    return importlib.metadata.packages_distributions()


def imported_packages(path: Path) -> set[str]:
    """Top-level packages that a file imports from outside this repository and the standard library."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(str(node.module).split(".")[0])
    return found - set(sys.stdlib_module_names) - OWN


def undeclared(room: str, declared: set[str]) -> Iterator[str]:
    for path in sorted((ROOT / room).rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for package in sorted(imported_packages(path) - {ELSEWHERE.get(file, ("",))[0]}):
            candidates = {name_of(name) for name in distributions().get(package, [package])}
            if not candidates & declared:
                yield f"{file} imports {package} ({', '.join(sorted(candidates))})"


@pytest.mark.parametrize(
    ("room", "declared"),
    [
        ("src", REQUIRED | OPTIONAL),
        ("tests", REQUIRED | EXTRAS["test"]),
        ("bench", REQUIRED | EXTRAS["test"]),
        ("studies", REQUIRED | EXTRAS["test"]),
    ],
)
def test_what_is_imported_is_declared(room: str, declared: set[str]) -> None:
    """A package that only comes along with another one goes when that one stops needing it."""
    assert list(undeclared(room, declared)) == []


def test_what_is_imported_elsewhere_is_said_there() -> None:
    for file, (package, maker) in ELSEWHERE.items():
        assert package in imported_packages(ROOT / file)
        assert package in (ROOT / maker).read_text()


def test_what_is_required_is_imported() -> None:
    """As far as it is required of this Python: dgl has no wheels for all of them."""
    imported = {package for path in SOURCES.rglob("*.py") for package in imported_packages(path)}
    required = [Requirement(line) for line in requirements("options", "install_requires")]
    here = {name_of(one.name) for one in required if one.marker is None or one.marker.evaluate()}
    assert {name_of(name) for package in imported for name in distributions().get(package, [])} >= here


def test_the_tests_install_every_extra_and_all_is_pinned() -> None:
    tested = set(requirements("options.extras_require", "test"))
    for extra in set(EXTRAS) - {"test"}:
        assert set(requirements("options.extras_require", extra)) <= tested, extra
    pinned = {name_of(line) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert (REQUIRED | EXTRAS["test"]) - pinned == set()


def test_the_version_is_written_in_one_place() -> None:
    assert settings()["metadata"]["version"] == "attr: llcg_dist.__version__"
    literal = re.compile(rf"""["']{re.escape(llcg_dist.__version__)}["']""")
    files = [*SOURCES.rglob("*.py"), *ROOT.glob("*.cfg"), *ROOT.glob("*.toml"), *(ROOT / "conf").rglob("*.yaml")]
    holders = [path.relative_to(ROOT).as_posix() for path in files if literal.search(path.read_text())]
    assert holders == ["src/llcg_dist/__init__.py"]


def test_the_citation_is_of_this_version_and_of_the_paper() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == llcg_dist.__version__
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["license"] == settings()["metadata"]["license"]
    [paper] = citation["references"]
    assert (paper["type"], paper["year"], paper["authors"][0]["family-names"]) == ("conference-paper", 2022, "Ramezani")
    assert paper["title"] in " ".join((ROOT / "README.md").read_text().replace("*", "").split())
    assert paper["url"] in settings()["metadata"]["project_urls"]


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## (\S+)(?: - (\d{4}-\d\d-\d\d))?$", changelog, re.M)
    versions = [version for version, _ in released if version != "Unreleased"]
    assert versions[0] == llcg_dist.__version__
    assert versions == sorted(versions, key=Version, reverse=True)
    date = str(yaml.safe_load((ROOT / "CITATION.cff").read_text())["date-released"])
    assert dict(released)[llcg_dist.__version__] == date
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {*re.findall(r"^### (.+)$", changelog, re.M)} <= kinds


def test_the_listed_packages_are_the_folders_there_are() -> None:
    """A list, because `find:` does not see llcg_dist.conf, which is mapped from conf/, nor llcg_dist.docs."""
    folders = {path.parent.relative_to(SOURCES.parent) for path in SOURCES.rglob("*.py")}
    assert set(requirements("options", "packages")) == {".".join(folder.parts) for folder in folders} | {
        "llcg_dist.conf",
        "llcg_dist.docs",
    }


@pytest.fixture(scope="module")
def wheel(built_wheel: Path) -> zipfile.ZipFile:
    assert built_wheel.name == f"llcg_dist-{llcg_dist.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(built_wheel)


def test_the_wheel_holds_code_presets_documentation_and_what_they_read_and_nothing_else(
    wheel: zipfile.ZipFile,
) -> None:
    code = {path.relative_to(SOURCES.parent).as_posix() for path in SOURCES.rglob("*.py")}
    conf = {f"llcg_dist/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "conf").rglob("*.yaml")}
    docs = {f"llcg_dist/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "docs").rglob("*.md")}
    read = {f"llcg_dist/report/{name}" for name in ("page.css", "page.js", "table1.csv")}
    read |= {"llcg_dist/cli/launch/batch_job.sh"}
    read |= {"llcg_dist/py.typed", "llcg_dist/__init__.pyi"}
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == code | conf | docs | read | {f"llcg_dist/{folder}/__init__.py" for folder in ("conf", "docs")}


def test_the_wheel_says_how_to_start_it_and_what_it_needs(wheel: zipfile.ZipFile) -> None:
    info = f"llcg_dist-{llcg_dist.__version__}.dist-info"
    assert "llcg = llcg_dist.cli.main:main" in wheel.read(f"{info}/entry_points.txt").decode()
    needs = [
        line for line in wheel.read(f"{info}/METADATA").decode().splitlines() if line.startswith("Requires-Dist: ")
    ]
    required = {name_of(line.removeprefix("Requires-Dist: ")) for line in needs if "extra ==" not in line}
    assert required == REQUIRED


def test_the_source_distribution_holds_the_checkout_and_builds_the_same_wheel(
    built_wheel: Path, tmp_path: Path
) -> None:
    """With metadata that an index accepts, and every file that README.md links to."""
    sdist = build_sdist(tmp_path)
    again = build(sys.executable, unpack(sdist, tmp_path / "unpacked"), "wheel", tmp_path / "wheel")
    assert list(findings(tmp_path / "tree", sdist, again)) == []
    assert wheel_files(again).keys() == wheel_files(built_wheel).keys()


@pytest.mark.parametrize(
    ("line", "other", "found"),
    [
        ("Version: ", "Version: one\n", "version"),
        ("Description-Content-Type: ", "", "not Markdown"),
        ("Keywords: ", "", "no keywords"),
        ("Summary: ", "", "no summary"),
        ("Requires-Python: ", "Requires-Python: three\n", "requires"),
        ("License: ", "", "no licence"),
    ],
)
def test_what_an_index_refuses_is_found(built_wheel: Path, line: str, other: str, found: str) -> None:
    content = wheel_metadata(built_wheel).decode()
    readme = content.partition("\n\n")[2]
    assert list(metadata_findings(content.encode(), readme)) == []
    changed = re.sub(rf"^{line}.*\n", other, content, count=1, flags=re.M)
    assert any(found in finding for finding in metadata_findings(changed.encode(), readme))
    assert any("not README.md" in finding for finding in metadata_findings(content.encode(), "# Another"))

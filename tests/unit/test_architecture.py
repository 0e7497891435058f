"""The architecture, held over the imports of every file (those inside functions too): layers import downwards only."""

import ast
from collections.abc import Callable, Container, Iterator
from functools import cache
from pathlib import Path

import pytest

import llcg_dist
from llcg_dist.algorithms.registry import ALGORITHMS
from llcg_dist.config.model import ModelConfig
from llcg_dist.models.registry import MODELS

ROOT = Path(llcg_dist.__file__).parent
FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py"))

LAYERS = [
    ["errors", "seeding", "lazy_imports", "stopwatch"],
    ["config"],
    ["data"],
    ["sampling"],
    ["models"],
    ["training"],
    ["comm"],
    ["algorithms"],
    ["records"],
    ["job"],
    ["predict", "doctor", "report", "train"],
    ["advise"],
    ["cli"],
    ["api"],
    ["__main__"],
]
"""From the bottom up; a module may import from its own layer's room and from the layers below."""


def module_of(file: str) -> str:
    return ".".join(("llcg_dist", *Path(file).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {module_of(file): file for file in FILES}


@cache
def imports(file: str) -> frozenset[str]:
    """Dotted names: `from a import b` counts as a and a.b, and `a.b` in the text as a.b where a is imported."""
    tree = ast.parse((ROOT / file).read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full"
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return frozenset(found | {name for name in used if name.split(".")[0] in found})


def packages(name: str) -> Iterator[str]:
    """a, a.b, a.b.c: importing a module imports the packages around it."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


@cache
def reached(file: str) -> frozenset[str]:
    """Everything a file imports, directly or through other files of this project."""
    seen: set[str] = set()
    names: set[str] = set()
    todo = [file]
    while todo:
        here = todo.pop()
        if here in seen:
            continue
        seen.add(here)
        names |= imports(here)
        around = {package for name in (module_of(here), *imports(here)) for package in packages(name)}
        todo += [MODULES[name] for name in around if name in MODULES]
    return frozenset(names)


def reaches(names: frozenset[str], library: str) -> bool:
    return any(name == library or name.startswith(f"{library}.") for name in names)


def users(library: str, found: Callable[[str], frozenset[str]]) -> set[str]:
    return {file for file in FILES if reaches(found(file), library)}


def room_of(file: str) -> str:
    return Path(file).parts[0].removesuffix(".py")


def imported_rooms(file: str) -> set[str]:
    names = {name for name in imports(file) if name.startswith("llcg_dist.")}
    rooms = {name.split(".")[1] for name in names}
    return {room for room in rooms if (ROOT / room).is_dir() or (ROOT / f"{room}.py").exists()}


def test_the_rules_see_the_files() -> None:
    assert len(FILES) > 30
    assert "llcg_dist.errors.UserError" in imports("training/schedule.py")
    assert "torch.distributed" in imports("comm/torch_dist.py")
    assert reaches(reached("train.py"), "torch_geometric")
    assert imported_rooms("training/trainer.py") == {"config", "data", "models", "sampling", "training"}


def test_every_room_has_its_layer() -> None:
    rooms = {room_of(file) for file in FILES} - {"__init__"}
    layered = [room for layer in LAYERS for room in layer]
    assert sorted(layered) == sorted(rooms)


@pytest.mark.parametrize("file", [file for file in FILES if file != "__init__.py"])
def test_layers_import_downwards_only(file: str) -> None:
    level = {room: height for height, layer in enumerate(LAYERS) for room in layer}
    room = room_of(file)
    upwards = {other for other in imported_rooms(file) if other != room and level[other] >= level[room]}
    assert not upwards, f"{file} imports from {', '.join(sorted(upwards))}, which is not below {room}"


def test_the_top_level_is_small() -> None:
    assert len([file for file in FILES if "/" not in file]) <= 8


@pytest.mark.parametrize("library", ["dgl", "pymetis"])
def test_metis_stays_in_its_process(library: str) -> None:
    assert users(library, imports) == {"data/metis_process.py"}
    assert users(library, reached) == {"data/metis_process.py"}


def test_numba_stays_in_the_kernels() -> None:
    assert users("numba", imports) == {"sampling/kernels.py", "data/stream_kernels.py", "data/kernel_cache.py"}


def test_torch_distributed_stays_in_its_files() -> None:
    transport = {"comm/torch_dist.py", "comm/link_maker.py", "comm/job_store.py", "comm/sealed_store.py"}
    launcher = {f"cli/launch/{name}.py" for name in ("agent", "elastic", "log_files", "rendezvous")}
    assert users("torch.distributed", imports) == transport | launcher


@pytest.mark.parametrize("room", ["training/", "algorithms/"])
@pytest.mark.parametrize("library", ["dgl", "torch.distributed"])
def test_the_mathematics_knows_neither_even_through_others(room: str, library: str) -> None:
    assert any(file.startswith(room) for file in FILES)
    assert {file for file in users(library, reached) if file.startswith(room)} == set()


@pytest.mark.parametrize("library", ["torch", "dgl", "torch_geometric"])
def test_report_reads_records_only(library: str) -> None:
    assert {file for file in users(library, reached) if file.startswith("report/")} == set()


def named(names: Container[str], file: str) -> set[str]:
    """Those of `names` that are strings of a file, docstrings and help texts apart."""
    tree = ast.parse((ROOT / file).read_text())
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in texts)
    return {node.value for node in strings if isinstance(node.value, str) and node.value in names}


@pytest.mark.parametrize(
    ("room", "names"), [("algorithms", {*ALGORITHMS} - {"llcg"}), ("models", {*MODELS})], ids=["methods", "models"]
)
def test_no_method_or_model_is_named_outside_of_its_room(room: str, names: set[str]) -> None:
    """So that a new one needs no edit elsewhere. `llcg` is the program's name, too."""
    assert named(names, f"{room}/registry.py") == names
    elsewhere = {file: named(names, file) for file in FILES if not file.startswith(f"{room}/")}
    default = {"config/model.py": {ModelConfig().name}}
    assert {file: found for file, found in elsewhere.items() if found and default.get(file) != found} == {}


@pytest.mark.parametrize("file", FILES)
def test_files_and_functions_are_small(file: str) -> None:
    """No file over 250 lines, no function over 40, no constructor with more than six arguments."""
    source = (ROOT / file).read_text()
    assert len(source.splitlines()) <= 250
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 40, f"{node.name} has over 40 lines"
            arguments = len(node.args.args) + len(node.args.kwonlyargs) - 1
            assert node.name != "__init__" or arguments <= 6, f"line {node.lineno}: {arguments} arguments"

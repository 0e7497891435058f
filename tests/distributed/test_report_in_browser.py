"""The report of a sweep of eight real jobs, in a real browser."""

import csv
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from llcg_dist import train
from llcg_dist.config.compose import load_config
from llcg_dist.records.columns import BYTES, sent_bytes
from llcg_dist.report import write_report
from llcg_dist.report.style import BYTE_KINDS
from tests.helpers.browser import CHROMIUM, Browser, browser
from tests.helpers.run_files import rows, summary

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
K, S, SEEDS = (1, 2), (0, 1), (0, 1)

TABLES = """[...document.querySelectorAll('table')].map(table => {
  const names = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  return [...table.tBodies[0].rows].map(row => Object.fromEntries([...row.cells].map((cell, i) =>
    [names[i], [cell.textContent, cell.dataset.value ?? null]])));
})"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sweep")
    for k in K:
        for s in S:
            for seed in SEEDS:
                settings = [
                    f"algorithm.K={k}",
                    f"algorithm.S={s}",
                    f"seed={seed}",
                    f"run_dir={root}/jobs/{k}-{s}-{seed}",
                ]
                places = ["cluster.backend=loopback", f"partition.root={root}/parts", "logger=none"]
                measured = ["diagnostics.every=2", "diagnostics.repeats=2", "diagnostics.hessian_steps=2"]
                train.run(load_config(["experiment=tiny", *settings, *places, *measured]), train.Rank())
    write_report([root / "jobs"])
    return root / "jobs"


@pytest.fixture(scope="module")
def opened(sweep: Path) -> Iterator[Browser]:
    with browser() as window:
        window.open(sweep / "report" / "index.html")
        yield window


def test_the_page_opens_alone_and_without_a_complaint(sweep: Path, opened: Browser) -> None:
    page = sweep / "report" / "index.html"
    assert page.stat().st_size < 5_000_000
    assert [address for address in opened.requests if not address.startswith("data:")] == [page.as_uri()]
    assert opened.complaints == []
    names = opened.evaluate("[...document.querySelectorAll('figure')].map(figure => figure.id)")
    assert set(names) == {
        "heat_llcg_K_S", "score_by_round", "loss_by_round", "score_by_bytes", "score_by_time", "score_by_compute",
        "steps_by_round", "classes", "confusion",
        "theory_terms", "theory_steps", "bytes_by_kind", "seconds_by_phase", "memory", "partition",
    }  # fmt: skip


def test_every_figure_is_seen(opened: Browser) -> None:
    """Drawn with a size, inside its card, with text in the page's own colour, in the light and in the dark."""
    boxes = opened.evaluate(
        "[...document.querySelectorAll('figure')].map(figure => {"
        " const inner = figure.querySelector('svg').getBoundingClientRect(), outer = figure.getBoundingClientRect();"
        " return [inner.width, inner.height, inner.left - outer.left, outer.right - inner.right];})"
    )
    assert len(boxes) >= 9
    for width, height, left, right in boxes:
        assert width > 300
        assert height > 150
        assert min(left, right) >= 0
    colours = []
    for scheme in ("light", "dark"):
        opened.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        text, paper = "getComputedStyle(document.querySelector('svg text')).fill", "getComputedStyle(document.body)"
        colours.append((opened.evaluate(text), opened.evaluate(f"{paper}.backgroundColor")))
    assert colours == [("rgb(32, 33, 36)", "rgb(247, 248, 250)"), ("rgb(232, 234, 237)", "rgb(18, 20, 23)")]


def test_its_numbers_are_those_of_the_records(sweep: Path, opened: Browser) -> None:
    results, classes, runs = opened.evaluate(TABLES)
    assert [row["class"][0] for row in classes] == ["0", "1", "2", "3"]
    assert [(row["K"][0], row["S"][0]) for row in results] == [(str(k), str(s)) for k in K for s in S]
    for row in results:
        folders = [sweep / f"{row['K'][0]}-{row['S'][0]}-{seed}" for seed in SEEDS]
        summaries = [summary(folder) for folder in folders]
        columns = {
            "final val %": ("final_val_score", 100, 2),
            "best val %": ("best_val_score", 100, 2),
            "test % at best val": ("test_score_at_best_val", 100, 2),
            "MB in all": ("total_bytes", 1e-6, 2),
            "MB as the paper counts": ("paper_mb_per_round", 1, 3),
        }
        for name, (key, scale, digits) in columns.items():
            values = [scale * content[key] for content in summaries]
            mean, std = statistics.fmean(values), statistics.stdev(values)
            text, exact = row[name]
            assert float(exact) == pytest.approx(mean, rel=1e-12)
            assert text == (f"{mean:.{digits}f} ± {std:.{digits}f}" if std else f"{mean:.{digits}f}")
        sent = [sum(map(sent_bytes, rows(folder))) / len(rows(folder)) / 1e6 for folder in folders]
        assert float(row["MB sent a round"][1]) == pytest.approx(statistics.fmean(sent), rel=1e-12)
    assert len(runs) == 8
    for row in runs:
        content = summary(sweep.parent / row["run"][0])
        names = {"final val %": "final_val_score", "best val %": "best_val_score"}
        for name, key in names.items():
            assert float(row[name][1]) == pytest.approx(100 * content[key])
            assert float(row[name][0]) == pytest.approx(100 * content[key], abs=0.0051)


def told(opened: Browser, figure: str, x: float, y: float) -> list[str]:
    """What the pointer reads there: shares of the picture's width and height."""
    place = opened.evaluate(
        f"(() => {{ const svg = document.querySelector('#{figure} svg');"
        " svg.scrollIntoView(); const box = svg.getBoundingClientRect();"
        f" return [box.left + box.width * {x}, box.top + box.height * {y}]; }})()"
    )
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    return str(opened.evaluate(f"document.querySelector('#{figure} .tip').innerText")).splitlines()


def values(lines: list[str]) -> dict[str, float]:
    return {line.rsplit(": ", 1)[0]: float(line.rsplit(": ", 1)[1]) for line in lines}


def test_the_pointer_reads_the_curves(sweep: Path, opened: Browser) -> None:
    head, *lines = told(opened, "score_by_round", 0.5, 0.33)
    assert head == "round: 2"
    shown = values(lines)
    assert len(shown) == 4
    scores = [rows(sweep / f"2-1-{seed}")[1]["val_score"] for seed in SEEDS]
    assert shown["llcg K=2 S=1"] == pytest.approx(100 * statistics.fmean(scores), rel=1e-3)


def test_the_pointer_reads_the_diagnostics(sweep: Path, opened: Browser) -> None:
    """Of nine panels the first and the last."""
    for column, x, y in (("kappa_a_sq", 0.2, 0.15), ("lipschitz", 0.85, 0.75)):
        head, *lines = told(opened, "theory_terms", x, y)
        assert head == "round: 2"
        measured = [rows(sweep / f"1-1-{seed}")[1][column] for seed in SEEDS]
        assert values(lines)["llcg K=1 S=1"] == pytest.approx(statistics.fmean(measured), rel=1e-3)


def test_files_beside_the_page_hold_the_records(sweep: Path) -> None:
    """Every point of every curve, whole."""
    columns = {"score_by_round": "val_score", "loss_by_round": "train_loss", "theory_terms": "sigma_var_sq"}
    for name, column in columns.items():
        with (sweep / "report" / f"{name}.csv").open() as file:
            cells = [cell for cell in csv.DictReader(file) if cell.get("column", column) == column]
        assert len(cells) == 4 * (1 if name == "theory_terms" else 3)
        for cell in cells:
            k, s = (part.rpartition("=")[2] for part in cell["group"].split()[1:])
            found = [rows(sweep / f"{k}-{s}-{seed}")[round(float(cell["x"])) - 1][column] for seed in SEEDS]
            scale = 100 if column == "val_score" else 1
            assert float(cell["mean"]) == pytest.approx(scale * statistics.fmean(found), rel=1e-12)
    with (sweep / "report" / "bytes_by_kind.csv").open() as file:
        for cell in csv.DictReader(file):
            k, s = (part.rpartition("=")[2] for part in cell["group"].split()[1:])
            for kind in BYTES:
                found = [row[kind] for seed in SEEDS for row in rows(sweep / f"{k}-{s}-{seed}")]
                assert float(cell[f"MB {BYTE_KINDS[kind][0]}"]) == pytest.approx(statistics.fmean(found) / 1e6)


def test_a_click_sorts_the_table(opened: Browser) -> None:
    click = "[...document.querySelectorAll('table th')].find(head => head.textContent === 'final val %').click()"
    orders = []
    for _ in range(2):
        opened.evaluate(click)
        values = [float(row["final val %"][1]) for row in opened.evaluate(TABLES)[0]]
        orders.append(values)
    assert orders[0] == sorted(orders[0], reverse=True)
    assert orders[1] == sorted(orders[1])
    assert opened.complaints == []


def test_without_scripts_everything_is_there(sweep: Path, opened: Browser) -> None:
    with_scripts = opened.evaluate("document.querySelectorAll('svg, table').length")
    opened.call("Emulation.setScriptExecutionDisabled", value=True)
    opened.open(sweep / "report" / "index.html")
    root = opened.call("DOM.getDocument")["root"]["nodeId"]
    found = opened.call("DOM.querySelectorAll", nodeId=root, selector="svg, table")["nodeIds"]
    opened.call("Emulation.setScriptExecutionDisabled", value=False)
    assert len(found) == with_scripts


def test_the_partition_on_the_page_is_the_runs(sweep: Path) -> None:
    recorded = json.loads((sweep / "1-0-0" / "partition.json").read_text())
    between = recorded["edges_between_parts"]
    assert sum(map(sum, between)) == 2 * recorded["num_edges"]
    assert between[0][1] == between[1][0] == recorded["cut_edges"]


def test_the_browser_would_notice(tmp_path: Path, opened: Browser) -> None:
    """A page that asks for a picture elsewhere and whose script fails: what the tests above look for is seen."""
    (tmp_path / "bad.html").write_text("<img src='http://127.0.0.1:9/picture.png'><script>nothing.at_all</script>")
    opened.open(tmp_path / "bad.html")
    assert "http://127.0.0.1:9/picture.png" in opened.requests
    assert any("nothing is not defined" in complaint for complaint in opened.complaints)

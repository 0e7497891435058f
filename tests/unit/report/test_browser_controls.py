"""What one can do on a report's page, in a real browser: hide lines, filter methods, move the page elsewhere."""

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from llcg_dist.report import write_report
from tests.helpers.browser import CHROMIUM, Browser, browser
from tests.helpers.run_records import write_run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
FIGURE = "document.querySelector('#score_by_round')"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of three methods with two seeds each, alone in a folder that is not where it was written."""
    runs, elsewhere = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("a mail")
    for i, method in enumerate(["single", "llcg", "psgd_pa"]):
        for seed in range(2):
            write_run(runs / f"{method}-{seed}", [0.5 + 0.1 * i, 0.6 + 0.1 * i, 0.65 + 0.01 * seed], method, seed)
    page, _ = write_report([runs])
    shutil.copy(page, elsewhere / "report.html")
    shutil.rmtree(runs)
    return elsewhere


@pytest.fixture
def opened(folder: Path) -> Iterator[Browser]:
    with browser() as window:
        window.open(folder / "report.html")
        yield window


def click(opened: Browser, element: str) -> None:
    """A real click in the middle of an element."""
    x, y = opened.evaluate(
        f"(() => {{ const element = {element}; element.scrollIntoView({{block: 'center'}});"
        " const box = element.getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        opened.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def entry(method: str) -> str:
    """The legend's text of a method."""
    return f"[...{FIGURE}.querySelectorAll('[data-legend] text')].find(text => text.textContent === '{method}')"


def seen(opened: Browser, figure: str = FIGURE) -> dict[int, bool]:
    """For each series whether anything that is drawn for it can be seen."""
    found = opened.evaluate(
        f"[...{figure}.querySelectorAll('[data-series]')].map(drawn =>"
        " [+drawn.dataset.series, drawn.getBoundingClientRect().width > 0])"
    )
    return {series: any(shown for other, shown in found if other == series) for series, _ in found}


def tip(opened: Browser) -> str:
    x, y = opened.evaluate(
        f"(() => {{ const svg = {FIGURE}.querySelector('svg'); svg.scrollIntoView();"
        " const box = svg.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 3]; })()"
    )
    opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    return str(opened.evaluate(f"{FIGURE}.querySelector('.tip').innerText"))


def test_a_click_on_the_legend_hides_a_line_and_another_shows_it(opened: Browser) -> None:
    assert seen(opened) == {0: True, 1: True, 2: True}
    assert "llcg: " in tip(opened)
    click(opened, entry("llcg"))
    assert seen(opened) == {0: True, 1: False, 2: True}
    assert "llcg: " not in tip(opened)
    assert "psgd_pa: " in tip(opened)
    assert seen(opened, "document.querySelector('#loss_by_round')")[1]  # of this figure alone
    click(opened, entry("llcg"))
    assert seen(opened) == {0: True, 1: True, 2: True}
    assert opened.complaints == []


@pytest.mark.parametrize(("key", "code"), [("Enter", 13), (" ", 32)])
def test_the_keyboard_sorts_tables_and_hides_lines(opened: Browser, key: str, code: int) -> None:
    def press(element: str) -> None:
        opened.evaluate(f"{element}.focus()")
        for kind in ("rawKeyDown", "keyUp"):
            opened.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    head = "[...document.querySelectorAll('th')].find(head => head.textContent === 'best val %')"
    first = "document.querySelector('tbody tr').dataset.method"
    press(head)
    assert opened.evaluate(first) == "psgd_pa"
    press(head)
    assert opened.evaluate(first) == "single"
    press(f"{entry('llcg')}.closest('[data-legend]')")
    assert seen(opened) == {0: True, 1: False, 2: True}
    assert opened.complaints == []


def test_lines_of_one_method_follow_the_dark_page(tmp_path: Path) -> None:
    for K in (2, 4):
        write_run(tmp_path / str(K), [0.5, 0.6], settings={"algorithm.K": K})
    page, _ = write_report([tmp_path])
    colours = {}
    with browser() as window:
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            window.call("Emulation.setEmulatedMedia", features=[feature])
            window.open(page)
            drawn = f"{FIGURE}.querySelector('[data-series=\"0\"] path')"
            colours[scheme] = window.evaluate(f"getComputedStyle({drawn}).stroke")
    assert colours["light"] == "rgb(0, 88, 138)"
    assert colours["dark"] not in ("none", colours["light"])


def test_the_filter_hides_a_method_everywhere(opened: Browser) -> None:
    def rows() -> list[str]:
        script = "[...document.querySelectorAll('tr[data-method]')].filter(row => row.offsetHeight > 0)"
        return list(opened.evaluate(f"{script}.map(row => row.dataset.method)"))

    assert rows().count("psgd_pa") == 3  # a result and two runs
    click(opened, "document.querySelector('.filter input[value=psgd_pa]')")
    assert "psgd_pa" not in rows()
    assert rows().count("llcg") == 3
    for figure in ("score_by_round", "bytes_by_kind", "seconds_by_phase", "memory"):
        assert seen(opened, f"document.querySelector('#{figure}')") == {0: True, 1: True, 2: False}, figure
    assert opened.evaluate(f"{entry('psgd_pa')}.getBoundingClientRect().width") == 0
    click(opened, "document.querySelector('.filter input[value=psgd_pa]')")
    assert rows().count("psgd_pa") == 3
    assert all(seen(opened).values())
    assert opened.complaints == []


def test_from_another_folder_it_asks_for_nothing_and_still_has_its_files(folder: Path, opened: Browser) -> None:
    page = folder / "report.html"
    assert list(folder.iterdir()) == [page]
    assert [address for address in opened.requests if not address.startswith("data:")] == [page.as_uri()]
    assert opened.complaints == []
    link = "document.querySelector('#score_by_round a[download$=\".csv\"]').href"
    table = base64.b64decode(str(opened.evaluate(link)).partition("base64,")[2]).decode()
    assert table.startswith("group,x,mean,low,high,seeds")
    size = opened.evaluate(
        "new Promise(done => { const picture = new Image(); picture.onload = () => done(picture.naturalWidth);"
        " picture.src = document.querySelector('#score_by_round a[download$=\".png\"]').href; })"
    )
    assert size > 500


@pytest.mark.parametrize("width", [1400, 500])
def test_nothing_is_wider_than_the_page(opened: Browser, width: int) -> None:
    opened.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width

"""docs/studies/index.md lists every table that a program writes, and every picture; its pictures follow the tables."""

import re

import pytest
from studies.made_at import DOCS, DRAWN, INDEX, RESULTS, content_of, made_at, slug
from studies.pictures import in_short, numbers, read_table

PLACES = {place for result in RESULTS for place in result.places}


def test_every_section_that_a_program_writes_is_listed() -> None:
    markers = {
        marker for page in DOCS.rglob("*.md") for marker in re.findall(r"<!-- (bench:\w+) -->", page.read_text())
    }
    assert markers - {"bench:index", "bench:short"} == {place for place in PLACES if place.startswith("bench:")}


def test_every_picture_is_listed_or_drawn_by_hand() -> None:
    pictures = {path.name for path in (DOCS / "figures").iterdir()}
    assert pictures - PLACES - DRAWN == set()


def test_every_heading_that_is_named_is_there() -> None:
    for result in RESULTS:
        for place in result.places:
            if not re.search(r"\.(png|svg)$|^bench:", place):
                assert content_of(result.shown_in.read_bytes(), place), f"{result.page} has no section {place!r}"


def test_the_page_has_a_row_and_a_commit_for_each() -> None:
    rows = re.findall(r"^\| \[(.+?)\]\(.+\) \| `.+` \| (.+) \|$", INDEX.read_text(), re.MULTILINE)
    assert [what for what, _ in rows] == [result.what for result in RESULTS]
    for what, commits in rows:
        assert re.fullmatch(r"[0-9a-f]{7,12}(, [0-9a-f]{7,12})*|not measured yet", commits), what


def test_what_counts_as_a_result() -> None:
    page = b"# A\n\n## One more\n\n| a |\n|---|\n\nwords\n\n## Two\n\n| b |\n"
    page += b"<!-- bench:x -->\n![p](../f.png)\n<!-- /bench:x -->\n"
    assert content_of(page, "One") == "| a |\n|---|"
    assert content_of(page, "bench:x") == content_of(page.replace(b"../f", b"f"), "bench:x") == "![p](f.png)"
    assert content_of(page, "Three") is None
    assert content_of(page, "f.png") == page


def test_what_is_not_there_is_not_measured() -> None:
    result = RESULTS[0]
    assert made_at(result, "nothing.png") == "not measured yet"


@pytest.mark.parametrize(("heading", "anchor"), [("S=auto", "sauto"), ("The demo's claim", "the-demos-claim")])
def test_anchors_are_those_of_the_site(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_tables_are_read_as_they_stand() -> None:
    rows = read_table("accuracy", "bench:accuracy", "computers", "homophily 0.7")
    assert rows[0][""] == "single, average"
    assert numbers("90.6 ± 0.7") == (90.6, 0.7)
    assert numbers("325 (132)") == (325.0, 0.0)
    with pytest.raises(LookupError):
        read_table("accuracy", "bench:accuracy", "computers", "nothing")


def test_the_page_on_performance_begins_with_its_claims() -> None:
    lines = in_short().splitlines()
    assert len(lines) == 6
    assert all(re.match(r"- \*\*[A-Z].+?\*\*.*: ", line) for line in lines)

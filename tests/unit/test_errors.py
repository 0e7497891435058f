"""One-line messages of what libraries and the system raise."""

import pytest

from llcg_dist.errors import first_line, os_error_line

GLOO = "[../third_party/gloo/gloo/transport/tcp/pair.cc:547] "


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{GLOO}Connection closed by peer [127.0.0.1]:4711", "Connection closed by peer [127.0.0.1]:4711"),
        (f"{GLOO}{GLOO}Read error [::1]:1: reset", "Read error [::1]:1: reset"),
        ("first\nsecond", "first"),
        ("[a.txt:3] is the user's", "[a.txt:3] is the user's"),
        ("", "RuntimeError"),
    ],
)
def test_the_first_line_without_places_in_the_sources(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device", "/a"), "/a: No space left on device; make room, and start"),
        (OSError(13, "Permission denied", "/a"), "/a: Permission denied"),
        (OSError("512 requested and 0 written"), "512 requested and 0 written"),
        (OSError(), "OSError"),
    ],
)
def test_the_systems_errors(error: OSError, line: str) -> None:
    assert os_error_line(error).startswith(line)

"""The line of docs/studies/diagnostics.md that says whether S=auto meets its aim, by hand."""

import json
from pathlib import Path

from studies.auto_s import folder, line


def test_best_smallest_and_allowed(tmp_path: Path) -> None:
    """Two seeds each: S=2 has the best mean, S=1 is within half a point of it; auto took 0 and 3 steps of 2 s each, and
    a second to choose."""
    finals = {"0": (80.0, 81.0), "1": (90.0, 90.2), "2": (90.6, 90.4), "auto": (90.4, 91.0)}
    for s, scores in finals.items():
        for seed, score in enumerate(scores):
            run = folder(tmp_path, "cell", s, seed)
            run.mkdir()
            rows = [
                {"S": steps, "val_score": score / 100, "seconds_correct": 1 + 2 * steps, "seconds_auto_s": 1}
                for steps in ((0, 3) if s == "auto" else (int(s),))
            ]
            (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    runs = {s: {seed: folder(tmp_path, "cell", s, seed) for seed in (0, 1)} for s in finals}
    shown = ["80.5 ± 0.7", "90.1 ± 0.1", "90.5 ± 0.1", "90.7 ± 0.4"]
    assert line("cell", runs) == ["cell", *shown, "+0.2 ± 0.4", "1", "1.50", "2", "0.5"]
    del runs["auto"]
    assert line("cell", runs) == ["cell", *shown[:3], *[""] * 5]

"""The paper's figures in their small versions: the pictures and numbers of docs/studies/figures.md.

    python -m studies.figures [--only fig5_k fig9_minibatch] [--runs runs/figures] [--out docs/figures] [overrides...]

Each is `llcg train -m experiment=[figures/NAME,figures/small] dataset=synthetic` with the overrides below, drawn by
`llcg report`, with a table each. Finished runs are not repeated: an interrupted call can be continued.
"""

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llcg_dist.cli.sweep.sweep import sweep
from llcg_dist.config.compose import quoted_override
from llcg_dist.records.console import say
from llcg_dist.report import write_report
from llcg_dist.report.tables import Row

_QUIET = ["logger=none", "checkpoint.every=0"]
# One graph stands for all of the paper's: the settings of one of them, with the rate of the demo, whose graph it is.
_REDDIT = ("experiment/paper=reddit_sage", "train.local_lr=0.01")


@dataclass(frozen=True)
class Small:
    """One figure: which of the report's plots show it, and what its small version changes besides figures/small."""

    plots: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    seeds: int = 2
    runs_of: str = ""
    """The figure whose runs these are, where it has none of its own."""
    columns: tuple[str, ...] = field(default=("final val %", "best val %", "MB sent a round"))


# In place of Yelp: a hundred labels, several a node; neighbours add nothing to what a node's own features say.
_YELP = ("dataset.homophily=0.3", "dataset.signal=0.4", "dataset.multilabel=100")
FIGURES = {
    "fig5_k": Small(("score_by_round", "sweep_llcg_K")),
    "fig6_ratio_s": Small(("heat_llcg_S_fanout", "score_by_round"), (*_REDDIT, "algorithm.S=1,4")),
    "fig7_8_correction_neighbours": Small(("score_by_round",), _REDDIT, seeds=3),
    "fig9_minibatch": Small(("score_by_round",), _REDDIT, seeds=3),
    "fig4_curves": Small(("score_by_round",), _REDDIT),
    "fig4_loss": Small(("loss_by_round",), runs_of="fig4_curves"),
    "fig4_bytes": Small(("score_by_bytes",), runs_of="fig4_curves"),
    "fig2_ggs_bytes": Small(("bytes_by_kind",), runs_of="fig4_curves"),
    # Real processes on a graph whose parts can be seen beside what Python and torch take.
    "fig1_machines": Small(
        ("memory", "seconds_by_phase"),
        ("dataset.nodes=120000", "dataset.features=256", "train.local_batch_size=512", "algorithm.K=4", "num_rounds=3",
         "evaluate.every=0", "cluster.backend=gloo"),
        seeds=1,
        columns=("seconds",),
    ),
    "fig11_large": Small(
        ("score_by_round", "score_by_compute"),
        ("experiment/paper=products16", "cluster.num_machines=16"),
    ),
    "fig10_yelp": Small(("score_by_round",), _YELP),
    "fig10_mlp": Small(("score_by_round",), _YELP),
    "fig10_products": Small(
        ("score_by_round",),
        ("dataset.homophily=0.9", "dataset.signal=0.03", "dataset.train_fraction=0.08", "train.local_lr=0.01"),
        seeds=3,
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--runs", type=Path, default=Path("runs/figures"))
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    arguments, overrides = parser.parse_known_args()
    for name in arguments.only:
        run(name, arguments.runs, overrides)
        rows = draw(name, arguments.runs, arguments.out)
        say(f"\n{name}\n\n{_markdown(rows, FIGURES[name].columns)}\n")


def run(name: str, runs: Path, overrides: Sequence[str]) -> None:
    """What is missing of the figure's sweep."""
    source = FIGURES[name].runs_of or name
    place = quoted_override("hydra.sweep.dir", str(runs / source))
    if code := sweep([*command(source), *_QUIET, place, *overrides]):
        raise SystemExit(code)


def draw(name: str, runs: Path, out: Path) -> list[Row]:
    """Pictures of the runs that have ended; returns the report's table."""
    figure = FIGURES[name]
    page, tables = write_report([runs / (figure.runs_of or name)])
    out.mkdir(parents=True, exist_ok=True)
    for plot in figure.plots:
        target = name if len(figure.plots) == 1 else f"{name}_{plot}"
        shutil.copyfile(page.parent / f"{plot}.png", out / f"{target}.png")
    (table,) = tables.values()
    return table


def command(name: str) -> list[str]:
    """What `llcg train -m` is called with."""
    small = FIGURES[name]
    seeds = ",".join(map(str, range(small.seeds)))
    return [f"experiment=[figures/{name},figures/small]", "dataset=synthetic", *small.overrides, f"seed={seeds}"]


def _markdown(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """What tells the rows apart, and the columns that the figure is about."""
    told_apart = list(rows[0])[: list(rows[0]).index("final val %")]
    keys = [*told_apart, *columns]
    lines = [" | ".join(keys), "|".join("---" for _ in keys)]
    return "\n".join(f"| {line} |" for line in [*lines, *(" | ".join(row[key].text for key in keys) for row in rows)])


if __name__ == "__main__":
    main()

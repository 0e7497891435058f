"""The way of a new user from a graph in files to a report: train, look, stop, go on, sweep, predict, report.

The graph is that of test_new_user_files.py, which holds what comes before.
"""

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.helpers.html_tables import tables_of
from tests.helpers.jobs import BIN, finish, llcg, llcg_in_process, members, start, start_llcg, wait_for_rounds
from tests.helpers.new_user import GRAPH, JOB, QUICK, ROUNDS, User
from tests.helpers.run_files import rows, summary
from tests.helpers.training import train_in_process
from tests.helpers.wordnet import FILES, FRAMES

pytestmark = pytest.mark.full  # two minutes of jobs


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    """One who has trained llcg with an interruption, two methods beside it, and a sweep over K and S."""
    user = User(tmp_path_factory.mktemp("user"))
    user.watch_a_run_and_stop_it()
    user.go_on()
    on_loopback = ["train", "-m", "cluster.backend=loopback"]
    user.said["methods"] = llcg(*on_loopback, *JOB, "algorithm=psgd_pa,single", cwd=user.folder)
    swept = ["num_rounds=3", "algorithm.K=1,2", "algorithm.S=0,1"]
    user.said["sweep"] = llcg(*on_loopback, *QUICK, *swept, cwd=user.folder)
    user.said["report"] = llcg_in_process("report", "runs", cwd=user.folder)
    return user


def test_ctrl_c_begins_a_new_line_and_says_how_to_go_on(user: User) -> None:
    assert user.said["stopped"].code == 130
    lines = user.terminal.replace("\r\n", "\n").splitlines()
    (told,) = [line for line in lines if "stopped by SIGINT" in line]
    assert told.startswith("llcg: error: stopped by SIGINT; go on with: llcg train dataset=files ")
    assert "Traceback" not in user.terminal


def test_watching_while_it_runs_and_when_it_is_stopped(user: User) -> None:
    running, stopped = user.said["watch, running"].out, user.said["watch, stopped"].out
    assert f"/{ROUNDS}, val " in running
    assert " s left" in running
    assert "no process works on it: go on with: llcg train " in stopped
    assert " s left" not in stopped


def test_the_printed_command_goes_on(user: User) -> None:
    """Megabytes are those of all rounds, none is lost or repeated, and so many checkpoints stay as was asked for."""
    resumed, run = user.said["resumed"], user.runs / "llcg"
    assert (resumed.code, resumed.err) == (0, "")
    assert resumed.out.startswith("going on after round ")
    assert [row["round"] for row in rows(run)] == list(range(1, ROUNDS + 1))
    (last,) = [line for line in resumed.out.splitlines() if f"round {ROUNDS}/{ROUNDS}" in line]
    sent = ("bytes_up", "bytes_down", "gradient_bytes", "feature_bytes", "control_bytes")
    megabytes = sum(row[key] for row in rows(run) for key in sent) / 1e6
    assert f"  {megabytes:.2f} MB  " in last
    kept = sorted(path.name.rpartition("-")[0] for path in (run / "checkpoints").iterdir())
    assert kept == [f"{owner}-r{ROUNDS:06d}" for owner in ("part0", "part1", "part2", "server")]


def test_watching_to_the_end(user: User) -> None:
    """The view waited while the run was on its way again."""
    watched = user.said["watch to the end"]
    assert watched.code == 0
    assert f"round {ROUNDS}/{ROUNDS}, " in watched.out
    assert watched.out.count(", finished") == 1


def test_the_same_folder_once_more(user: User) -> None:
    again = llcg("train", *JOB, "run_dir=runs/llcg", cwd=user.folder)
    assert again.code == 0
    assert again.out.startswith("runs/llcg holds a finished run: nothing to do (raise num_rounds to go on")
    other = llcg("train", *JOB, "algorithm.K=3", "run_dir=runs/llcg", cwd=user.folder)
    assert other.code == 2
    assert "algorithm.K (2.0 there, 3.0 here); choose another folder" in other.only_error()


def test_sweeps_say_what_they_do(user: User) -> None:
    for name, jobs in (("methods", 2), ("sweep", 4)):
        assert (user.said[name].code, user.said[name].err) == (0, "")
        assert f"{jobs} of {jobs} jobs done, records in runs/sweeps/" in user.said[name].out
    assert "algorithm.K=1,algorithm.S=1: done, best val " in user.said["sweep"].out


def test_results_of_every_class(user: User) -> None:
    classes = json.loads((user.runs / "llcg" / "classes.json").read_text())["test"]
    support = pd.Series(user.files.classes)[user.files.test].value_counts()
    assert {row["class"]: row["support"] for row in classes["classes"]} == support.to_dict()


def test_predictions_have_the_names_of_the_files(user: User) -> None:
    """Of every verb, also of those without a label or an edge."""
    told = user.llcg("predict", "run_dir=runs/llcg")
    table = pd.read_csv(user.runs / "llcg" / "predictions.csv")
    assert table["node"].tolist() == user.files.ids
    right = (table["class"] == user.files.classes)[user.files.test].mean()
    assert right == pytest.approx(summary(user.runs / "llcg")["test_score_at_best_val"])
    assert right > 0.5
    assert "test nodes of each class" in told
    assert "Gefühl" in told


def test_predictions_of_another_graph(user: User) -> None:
    """The same verbs without their edges: with labels there are results of every class, without labels none."""
    (user.folder / "none.csv").write_text("von;nach;gewicht\n")
    unlabelled = [setting for setting in FILES if not setting.startswith("dataset.labels=")]
    graph = ["predict", "run_dir=runs/llcg", *unlabelled, "dataset.edges=none.csv"]
    assert "each class" not in user.llcg(*graph, "out=new.csv")
    assert "labelled nodes of each class" in user.llcg(*graph, "dataset.labels=labels.csv", "out=new.csv")
    classes = json.loads((user.folder / "new_classes.json").read_text())["test"]
    assert classes["nodes"] == user.files.labelled.sum()
    assert pd.read_csv(user.folder / "new.csv")["node"].tolist() == user.files.ids


def test_several_labels_a_verb(user: User) -> None:
    settings = [setting for setting in QUICK if "labels" not in setting and "name=" not in setting]
    with contextlib.chdir(user.folder):
        labels = ["dataset.labels=frames.csv", "dataset.name=rahmen"]
        train_in_process(*settings, *labels, "num_rounds=3", "run_dir=frames")
    told = user.llcg("predict", "run_dir=frames")
    assert all(name in told for name in FRAMES.values())
    assert "confusion" not in told
    table = pd.read_csv(user.folder / "frames" / "predictions.csv")
    assert table.columns.tolist() == ["node", "class", *(f"probability_{name}" for name in FRAMES.values())]
    user.llcg("report", "frames")
    assert pd.read_csv(user.folder / "frames" / "report" / "every_class.csv")["class"].tolist() == [*FRAMES.values()]


def page_of(user: User) -> Path:
    assert user.said["report"].code == 0, user.said["report"]
    return user.runs / "report" / "index.html"


def results(user: User) -> dict[str, dict[str, Any]]:
    """The rows of the report's first table that are of the long runs, by method or state."""
    table = tables_of(page_of(user))[0]
    return {("stopped" if row["state"].startswith("unfinished") else row["method"]): row for row in table
            if row["num_rounds"] == str(ROUNDS)}  # fmt: skip


def test_the_report_compares(user: User) -> None:
    """One run has no ±; the best distributed method is marked; gaps are columns; the stopped run is unfinished."""
    found, text = results(user), page_of(user).read_text()
    assert set(found) == {"llcg", "psgd_pa", "single", "stopped"}
    assert "±" not in user.said["report"].out
    score = {method: float(found[method]["test % at best val"]) for method in ("llcg", "psgd_pa", "single")}
    best = max(score["llcg"], score["psgd_pa"])
    assert f'class="best" data-value="{best:.2f}'[:-1] in text
    assert float(found["llcg"]["gap to single"]) == pytest.approx(score["llcg"] - score["single"], abs=0.011)
    assert float(found["llcg"]["gap to psgd_pa"]) == pytest.approx(score["llcg"] - score["psgd_pa"], abs=0.011)
    assert found["stopped"]["state"].endswith(f" of {ROUNDS} rounds")


def test_the_report_says_where_everything_comes_from(user: User) -> None:
    text, names = page_of(user).read_text(), [row["run"] for row in tables_of(page_of(user))[-1]]
    assert "<code>llcg report runs</code> llcg_dist " in text
    assert "runs/llcg" in names
    assert any(name.endswith("/algorithm.K=1,algorithm.S=1") and name.startswith("K=1,2_S=0,1_") for name in names)
    assert f":{user.runs / 'llcg'}</code>" in text
    assert '<a href="../llcg/logs/server.log">' in text
    assert 'download="score_by_round.png" href="data:image/png;base64,' in text


def test_the_reports_tables_open_in_pandas_and_in_a_spreadsheet(user: User) -> None:
    folder = page_of(user).parent
    tables = {path.stem: pd.read_csv(path) for path in folder.glob("*.csv")}
    assert {"results", "runs", "classes", "confusion", "score_by_round", "partition"} <= set(tables)
    assert "'=Verzehr" in set(tables["every_class"]["class"])
    assert {"label_Gefühl", "label_Körper"} <= set(tables["partition"].columns)
    assert "'=Verzehr" in tables["confusion"].columns


@pytest.mark.full
def test_the_view_of_a_run_that_was_killed_ends(tmp_path: Path) -> None:
    """Without a word by the run itself: kill -9 of all its processes."""
    user = User(tmp_path)
    command = [str(BIN / "llcg"), "train", *QUICK, "num_rounds=5000", "run_dir=runs/killed"]
    job = start(["setsid", *command], user.folder)
    wait_for_rounds(user.runs / "killed", 3, job)
    view = start_llcg("watch", "runs/killed", cwd=user.folder)
    for process in (job.pid, *members(job)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    job.wait()
    watched = finish(view, limit=90)
    assert watched.code == 1
    status = [line for line in watched.out.splitlines() if line.startswith("round ")][-1]
    assert "no process works on it: go on with: " in status


@pytest.mark.full
def test_every_method_with_real_processes(tmp_path: Path) -> None:
    """Named as the help names them, each with its defaults; one report over all."""
    user = User(tmp_path)
    methods = "llcg,llcg_paper,llcg_plus,psgd_pa,ggs,full_sync,subgraph_approx,single,server_only"
    swept = finish(
        start_llcg("train", "-m", *GRAPH, "num_rounds=10", f"algorithm={methods}", cwd=user.folder), limit=600
    )
    assert swept.code == 0, swept
    assert "9 of 9 jobs done" in swept.out
    told = user.llcg("report", "runs")
    assert "gap to single" in told
    assert all(f"\n{method} " in told for method in ("llcg", "psgd_pa", "ggs", "full_sync", "subgraph_approx"))

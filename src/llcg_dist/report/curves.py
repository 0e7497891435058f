"""Curves: score and loss by round, bytes and time, and the schedule of local steps."""

from matplotlib.figure import Figure as Canvas

from llcg_dist.report.figure import WIDTH, Figure, hover_of, new_canvas
from llcg_dist.report.groups import Study
from llcg_dist.report.lines import Values, column, draw_lines, label_axes, legend, legend_shape, plain_ticks, rounds
from llcg_dist.report.runs import Run


def curve_figures(study: Study) -> list[Figure]:
    """The six figures of curves."""
    score = f"validation {study.metric} (%)"
    several = any(len(group.runs) > 1 for group in study.groups)
    band = "Lines are means over seeds, bands reach from the lowest to the highest seed." if several else ""
    return [
        _figure(
            "score_by_round", "Validation score by round", study, ("round", rounds), (score, "val_score", 100),
            "How good the model is after each round of communication, on the whole graph, cut edges included. " + band,
        ),
        _figure(
            "loss_by_round", "Training loss by round", study, ("round", rounds), ("training loss", "train_loss", 1),
            "The loss over all training nodes on the whole graph: what the methods really minimise. " + band,
        ),
        _figure(
            "score_by_bytes", "Validation score by bytes sent", study,
            ("MB sent, all machines, both directions", Run.sent_megabytes), (score, "val_score", 100),
            "The further left a curve rises, the less it had to send for its score (logarithmic axis). "
            "A level line is the last score of a method that sends nothing.",
            log=True,
        ),
        _figure(
            "score_by_time", "Validation score by time", study, ("seconds of training", Run.seconds),
            (score, "val_score", 100),
            "When the model of each round was ready, starting up not counted. Times of different hosts, or of "
            "machines that share one process (loopback), are not to be compared.",
        ),
        _figure(
            "score_by_compute", "Validation score by compute time", study,
            ("seconds of local steps and correction", Run.compute_seconds), (score, "val_score", 100),
            "The same without exchange, waiting and evaluation: the slowest machine's local steps and the server's "
            "correction, as if every machine had a core and a free network to itself. On loopback machines take turns, "
            "so their steps are timed alone; processes that share cores slow each other down.",
        ),
        _figure(
            "steps_by_round", "Local steps by round", study, ("round", rounds), ("local steps", "local_steps", 1),
            "How many steps a machine takes on its own before it sends its model: K of them, growing with rho. "
            "The more, the fewer rounds, and the further the machines drift apart between two of them.",
        ),
    ]  # fmt: skip


def overview(study: Study) -> Canvas:
    """Score and loss by round in one figure, which becomes curves.png, for READMEs and slides."""
    canvas = new_canvas(11, 4.2)
    scores, losses = canvas.subplots(1, 2)
    draw_lines(scores, study.groups, rounds, column("val_score"), 100)
    draw_lines(losses, study.groups, rounds, column("train_loss"))
    label_axes(scores, "round", f"validation {study.metric} (%)")
    label_axes(losses, "round", "training loss")
    for axes in (scores, losses):
        axes.set_title("whole graph, after each round")
    legend(canvas, scores)
    return canvas


def _figure(
    name: str,
    title: str,
    study: Study,
    x: tuple[str, Values],
    y: tuple[str, str, float],
    caption: str,
    log: bool = False,
) -> Figure:
    (x_label, x_of), (y_label, key, scale) = x, y
    lines, _ = legend_shape([group.label for group in study.groups], WIDTH)
    canvas = new_canvas(height=3.4 + 0.2 * lines)
    axes = canvas.subplots()
    if log:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    series, data = draw_lines(axes, study.groups, x_of, column(key), scale)
    label_axes(axes, x_label, y_label)
    legend(canvas, axes)
    return Figure(name, title, caption, canvas, data, [hover_of(canvas, axes, series)])

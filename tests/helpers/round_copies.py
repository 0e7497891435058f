"""`python -m tests.helpers.round_copies DEVICE`: what crosses between the CPU and a device in a round of every model.

A line of JSON for each model, with its features on the host and on the device. DEVICE is cuda, or toy: a stand-in for
one (tests/helpers/toy_device.py), whose Python backend has no CSR tensors, which PyG's attention layers take.
"""

import json
import sys
from importlib import import_module
from typing import Any

from llcg_dist.config.train import TrainConfig
from llcg_dist.training.evaluation import EvaluationSettings, Evaluator
from llcg_dist.training.flat_vector import flatten
from tests.helpers.copies import CountCopies
from tests.helpers.devices import GRAPH, NAMES, corrector_of, model_of, trainer_of

STEPS = 3
SGD = TrainConfig(optimizer="sgd")
"""Adam would make a step of full length of a gradient that is zero but for rounding."""


def measured(name: str, device: str, features_on_device: bool) -> dict[str, Any]:
    """Of one round of local steps, beside the same round on the CPU."""
    start = flatten(model_of(name))
    there, here = trainer_of(name, device, features_on_device, SGD), trainer_of(name, "cpu", train=SGD)
    tensors = len(here._batches_of(1).next().tensors())
    with CountCopies() as copies:
        there.run_steps(start, 1, STEPS)
        uploads, downloads = copies.take()
        theta, loss = there.theta(), there.mean_loss()
        _, at_end = copies.take()
    here.run_steps(start, 1, STEPS)
    return {
        "model": name,
        "features": "device" if features_on_device else "host",
        "uploads": len(uploads),
        "expected": 1 + STEPS * tensors,
        "downloads_in_steps": len(downloads),
        "downloads_of_round": len(at_end),
        "difference": float((theta - here.theta()).abs().max()),
        "loss_difference": abs((loss or 0.0) - (here.mean_loss() or 0.0)),
        "moved": float((theta - start).abs().max()),
    } | _corrected_and_evaluated(name, device)


def _corrected_and_evaluated(name: str, device: str) -> dict[str, Any]:
    """Downloads of two correction steps on batches that were drawn before, and how far scores are from the CPU's."""
    start, corrector = flatten(model_of(name)), corrector_of(name, device)
    corrector.prefetch(1)
    with CountCopies() as copies:
        corrector.trainer.run_steps(start, 1, 2)
        _, downloads = copies.take()
    there, here = (
        Evaluator(GRAPH, model_of(name), EvaluationSettings("recalibrate", 20, device=where)).evaluate(start)
        for where in (device, "cpu")
    )
    return {
        "downloads_in_correction": len(downloads),
        "evaluation_difference": abs(there.train_loss - here.train_loss),
    }


if __name__ == "__main__":
    wanted = sys.argv[1]
    if wanted == "toy":
        import_module("tests.helpers.toy_device")
    for name in NAMES:
        if (wanted, name) != ("toy", "gat"):
            for features_on_device in (False, True):
                sys.stdout.write(json.dumps(measured(name, wanted, features_on_device)) + "\n")

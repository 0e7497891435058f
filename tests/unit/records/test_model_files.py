"""The models of a run on disk: best.pt is of a round that the run went on from."""

from pathlib import Path

import torch

from llcg_dist.records.model_files import ModelFiles


def state(value: float) -> dict[str, torch.Tensor]:
    return {"weight": torch.full((2,), value)}


def test_a_run_goes_on_with_the_best_of_its_checkpoint(tmp_path: Path) -> None:
    before = ModelFiles(tmp_path)
    before.save_best(1, state(0.1))
    saved = before.best
    before.save_best(3, state(0.3))  # after the checkpoint: a round that is repeated
    after = ModelFiles(tmp_path)
    after.load_best(saved)
    assert torch.load(tmp_path / "best.pt")["weight"][0].item() == torch.tensor(0.1).item()
    assert after.best is not None
    assert after.best["round"] == 1


def test_no_round_was_scored_by_then(tmp_path: Path) -> None:
    ModelFiles(tmp_path).save_best(3, state(0.3))
    after = ModelFiles(tmp_path)
    after.load_best(None)
    assert after.best is None
    assert not (tmp_path / "best.pt").exists()

"""Predictions by pieces are those of all logits at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from llcg_dist.training import predictions as module
from llcg_dist.training.predictions import most_probable, predictions


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 30), st.data())
def test_pieces_make_no_difference(nodes: int, classes: int, at_once: int, data: st.DataObject) -> None:
    values = data.draw(arrays.arrays("f4", (nodes, classes), elements=st.floats(-9, 9, width=32)))
    chosen = torch.tensor(data.draw(st.lists(st.integers(0, nodes - 1), min_size=1)))
    logits = torch.from_numpy(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_VALUES_AT_ONCE", at_once)
        classes_of, labels_of = predictions(logits, False, chosen), predictions(logits, True)
        best, probability = most_probable(logits)
    assert classes_of is not None
    assert torch.equal(classes_of, logits[chosen].argmax(dim=1))
    assert labels_of is not None
    assert torch.equal(labels_of, logits > 0)
    whole = logits.softmax(dim=1).max(dim=1)
    assert torch.equal(best, whole.indices)
    assert torch.equal(probability, whole.values)


def test_what_has_no_answer() -> None:
    """Nobody asked, or a logit is not finite, in whichever piece; those of other nodes do not matter."""
    logits = torch.zeros(6, 2)
    logits[4, 1] = float("nan")
    assert predictions(logits, False, torch.tensor([], dtype=torch.int64)) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_VALUES_AT_ONCE", 4)
        assert predictions(logits, False) is None
        assert predictions(logits, True, torch.tensor([0, 1, 4])) is None
        assert predictions(logits, False, torch.tensor([0, 5])) is not None

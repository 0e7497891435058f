"""What the study of bfloat16 makes of two runs' scores, by hand."""

import numpy as np
from studies.precision import claims, scores_table


def test_differences_are_seed_by_seed_and_claims_of_the_means() -> None:
    found = {("g", "float32"): np.array([80.0, 90.0]), ("g", "bfloat16"): np.array([80.3, 89.9])}
    assert "| g | 85.00 ± 7.07 | 85.10 ± 6.79 | +0.10 ± 0.28 |" in scores_table(found)
    (claim,) = claims(found)
    assert claim.holds
    assert abs(claim.found.median - 0.1) < 1e-9
    (claim,) = claims(found | {("g", "bfloat16"): np.array([79.7, 89.7])})
    assert not claim.holds

"""What llcg doctor says of the noise on updates."""

from llcg_dist.config.compose import load_config
from llcg_dist.doctor.findings import OK, WARN
from llcg_dist.doctor.privacy_rules import check_privacy

NOISE = ["algorithm.clip=0.5", "algorithm.noise=4", "num_rounds=25"]


def levels(*overrides: str) -> list[str]:
    return [finding.level for finding in check_privacy(load_config(overrides))]


def test_without_noise_there_is_nothing_to_say() -> None:
    assert levels() == levels("algorithm.clip=1") == []


def test_the_epsilon_of_all_rounds() -> None:
    (finding,) = check_privacy(load_config([*NOISE, "algorithm.noise_seed=secret"]))
    assert (finding.level, finding.advice) == (OK, "")
    assert "25 rounds: epsilon 5.68 at delta 1e-05" in finding.what


def test_a_promise_that_says_little_and_a_seed_that_the_server_knows() -> None:
    assert levels(*NOISE) == [OK, WARN]
    assert levels(*NOISE, "algorithm.noise=1", "algorithm.noise_seed=secret") == [WARN]

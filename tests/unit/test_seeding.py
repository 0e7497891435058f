"""Randomness is keyed by (seed, stream, round) and by nothing else."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist import seeding

small = st.integers(0, 1000)


@given(st.tuples(small, small, small), st.tuples(small, small, small))
def test_other_keys_give_other_draws_and_the_same_key_the_same(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    def draws(key: tuple[int, ...]) -> list[int]:
        return seeding.generator(*key).integers(2**62, size=4).tolist()

    assert draws(one) == draws(one)
    assert (draws(one) == draws(other)) == (one == other)


def test_parts_the_server_and_the_initial_weights_have_streams_of_their_own() -> None:
    streams = [seeding.SERVER_STREAM, seeding.INITIAL_WEIGHTS_STREAM, *(seeding.part_stream(p) for p in range(100))]
    assert len(set(streams)) == len(streams)


def test_numpys_global_generator_plays_no_part() -> None:
    first = seeding.generator(1, 2, 3).random(5)
    np.random.seed(7)
    assert (seeding.generator(1, 2, 3).random(5) == first).all()


def test_torch_is_seeded_from_the_generator() -> None:
    seeding.seed_torch(seeding.generator(1, 2, 3))
    first = torch.rand(5)
    torch.rand(100)
    seeding.seed_torch(seeding.generator(1, 2, 3))
    assert torch.equal(torch.rand(5), first)
    seeding.seed_torch(seeding.generator(1, 2, 4))
    assert not torch.equal(torch.rand(5), first)

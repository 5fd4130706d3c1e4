"""Streams are told apart by seed and name, and can be stopped and gone on with."""

from __future__ import annotations

import json
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belated._kernels.streams import generator_state, restore_generator, stream
from belated.errors import DamagedFileError, InvalidInputError


def test_the_same_name_and_seed_give_the_same_numbers() -> None:
    assert stream(3, "agent").random(5).tolist() == stream(3, "agent").random(5).tolist()


def test_the_numbers_are_those_of_a_spawned_pcg64() -> None:
    sequence = np.random.SeedSequence(3, spawn_key=(crc32(b"delay"),))
    assert stream(3, "delay").random() == np.random.Generator(np.random.PCG64(sequence)).random()


def test_streams_differ_by_name_and_by_seed() -> None:
    firsts = {
        stream(seed, name).random()
        for seed in range(20)
        for name in ("agent", "delay", "environment", "", "Agent", "agent ")
    }
    assert len(firsts) == 120


def test_streams_of_neighbours_are_uncorrelated() -> None:
    rows = np.array([stream(seed, name).random(4000) for seed in (0, 1) for name in ("agent", "delay", "world")])
    correlations = np.corrcoef(rows)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(4000)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_a_bad_seed_is_named(seed: object) -> None:
    with pytest.raises(InvalidInputError, match=rf"^seed must be .*got {seed!r}$"):
        stream(seed, "agent")  # type: ignore[arg-type]


@given(st.integers(0, 2**64), st.integers(0, 9), st.booleans())
def test_state_round_trip(seed: int, drawn: int, half: bool) -> None:
    rng = stream(seed, "agent")
    rng.standard_normal(drawn)
    if half:
        rng.integers(10, dtype=np.uint32)  # leaves half of a 64-bit number in the generator
    state = json.loads(json.dumps(generator_state(rng)))
    again = restore_generator(state)
    assert again.integers(10, size=3, dtype=np.uint32).tolist() == rng.integers(10, size=3, dtype=np.uint32).tolist()
    assert again.standard_normal(5).tolist() == rng.standard_normal(5).tolist()


def test_taking_the_state_does_not_change_the_stream() -> None:
    rng, other = stream(0, "agent"), stream(0, "agent")
    generator_state(rng)["state"]["state"] = 0
    assert rng.random() == other.random()


def test_only_pcg64_can_be_saved() -> None:
    with pytest.raises(
        InvalidInputError, match="rng must be a PCG64 stream, since only those can be saved, got 'MT19937'"
    ):
        generator_state(np.random.Generator(np.random.MT19937(0)))


GOOD = {"bit_generator": "PCG64", "state": {"state": 1, "inc": 3}, "has_uint32": 0, "uinteger": 0}


@pytest.mark.parametrize(
    "state",
    [
        None,
        5,
        {},
        {"bit_generator": "PCG64"},
        {**GOOD, "bit_generator": "MT19937"},
        {**GOOD, "state": 5},
        {**GOOD, "state": {"state": "x", "inc": 3}},
        {**GOOD, "state": {"state": -1, "inc": 3}},
        {**GOOD, "state": {"state": 1 << 200, "inc": 3}},
        {**GOOD, "has_uint32": 1 << 70},
    ],
)
def test_a_broken_state_is_refused(state: object) -> None:
    with pytest.raises(DamagedFileError, match="a saved random stream cannot be read"):
        restore_generator(state)  # type: ignore[arg-type]


def test_the_good_state_is_good() -> None:
    restore_generator(GOOD).random()

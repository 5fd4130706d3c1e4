"""Named random streams from one seed.

Each source of randomness (environment, delay, agent) has its own stream, so that swapping the agent leaves the draws of
environment and delays unchanged: common random numbers.
"""

from __future__ import annotations

from typing import Any, cast
from zlib import crc32

import numpy as np

from belated._util.validate import integer, refuse
from belated.errors import DamagedFileError


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the generator `name` of the seed `seed`.

    >>> stream(7, "delay").integers(100, size=3).tolist() == stream(7, "delay").integers(100, size=3).tolist()
    True
    >>> stream(7, "delay").random() == stream(7, "agent").random()
    False
    """
    if not isinstance(name, str):
        raise refuse("name", name, "a string")
    key = (crc32(name.encode()),)
    sequence = np.random.SeedSequence(integer("seed", seed, at_least=0), spawn_key=key)
    return np.random.Generator(np.random.PCG64(sequence))


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of `rng` as plain values for JSON."""
    state: dict[str, Any] = dict(rng.bit_generator.state)
    if state["bit_generator"] != "PCG64":
        raise refuse("rng", state["bit_generator"], "a PCG64 stream, since only those can be saved")
    return state


def restore_generator(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator that continues exactly where `generator_state` was taken."""
    bits = np.random.PCG64()
    try:
        bits.state = cast(Any, state)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise DamagedFileError(f"a saved random stream cannot be read: {error}") from None
    return np.random.Generator(bits)

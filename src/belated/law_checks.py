"""The conformance suite of delay laws: what every law must do, the library's and yours.

Each check takes a law, draws from it, and raises `AssertionError` with a sentence if the law breaks its contract. Run
them all with `check_law`, or one by one in a test:

    @pytest.mark.parametrize("check", belated.law_checks.ALL, ids=lambda check: check.__name__)
    def test_my_law(check):
        check(MyLaw())
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from belated.delays import NEVER, DelayLaw, IndependentLaw, OutcomeLaw, law_from_dict
from belated.errors import BelatedError
from belated.named import name_of
from belated.rng import stream
from belated.types import Floats, Ints

Law = DelayLaw | OutcomeLaw
Check = Callable[[Law], None]

EPISODES = 400
"""How many delays are drawn."""
FAR = 20_000
"""Sums over the distribution of a law go up to this delay."""


def _count(law: Law) -> int:
    """Return how many delays to draw; a record may be shorter."""
    return min(EPISODES, law.lasts) if isinstance(law, DelayLaw) else EPISODES


def _drawn(law: Law, count: int) -> Ints:
    return law.draw(stream(1, "delay"), count, 0, None)[0]


def draws_whole_delays(law: Law) -> None:
    """A draw is a pair: whole numbers >= 0, one for each episode (and outcome), and a state that JSON can hold."""
    for count in (_count(law), 0):
        answer = law.draw(stream(1, "delay"), count, 0, None)
        assert isinstance(answer, tuple), f"draw must return a pair of delays and state, got {type(answer).__name__}"
        assert len(answer) == 2, f"draw must return a pair of delays and state, got {len(answer)} things"
        delays, state = answer
        outcomes = (len(law.laws_by_outcome),) if isinstance(law, OutcomeLaw) else ()
        assert isinstance(delays, np.ndarray), f"draw must return an array of delays, got {type(delays).__name__}"
        assert delays.dtype == np.int64, f"delays must be 64-bit integers, got {delays.dtype}"
        assert delays.shape == (count, *outcomes), f"delays must have shape {(count, *outcomes)}, got {delays.shape}"
        assert delays.min(initial=0) >= 0, f"delays must be at least 0, got {delays.min()}"
        try:
            json.dumps(state, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"the state must be plain values that JSON can hold: {error}") from error


def same_seed_same_delays(law: Law) -> None:
    """Two runs with the same stream get the same delays, also when they ask in turns: a law keeps nothing itself."""
    count = _count(law)
    whole = _drawn(law, count)
    assert np.array_equal(_drawn(law, count), whole), (
        "with the same stream the delays differ, or a draw changes the law"
    )
    runs = [_Asking(law), _Asking(law)]
    for first in range(0, count, 50):
        left, right = (run.ask(first, min(50, count - first)) for run in runs)
        assert np.array_equal(left, right), (
            "two runs that ask in turns get different delays: what a law remembers belongs into its state"
        )


class _Asking:
    """A run, as far as delays go."""

    def __init__(self, law: Law) -> None:
        self.law, self.rng = law, stream(1, "delay")
        self.state: Any = None

    def ask(self, first: int, count: int) -> Ints:
        """Return the next delays, after the state went through JSON as in a checkpoint."""
        delays, state = self.law.draw(self.rng, count, first, self.state)
        self.state = json.loads(json.dumps(state))
        return delays


def cutting_does_not_matter(law: Law) -> None:
    """However episodes are cut into draws, their delays are the same; the state may go through JSON in between.

    So a checkpoint goes on to the same rows, and a longer run only adds delays to those of a shorter one.
    """
    count = _count(law)
    whole = _drawn(law, count)
    for size in (1, 7, 128):
        run = _Asking(law)
        parts = [run.ask(first, min(size, count - first)) for first in range(0, count, size)]
        assert np.array_equal(np.concatenate(parts), whole), (
            f"drawn by {size} the delays are others than drawn at once: use the same random numbers for each episode, "
            "look at `first`, and remember what is needed in the state"
        )


def tells_what_it_is(law: Law) -> None:
    """A law has a label, which is not empty, and a mean, which is a number."""
    assert isinstance(law.label, str), f"label must be a text, got {type(law.label).__name__}"
    assert law.label.strip(), "label must not be empty"
    if isinstance(law, DelayLaw):
        mean: Any = getattr(law, "mean", None)
        assert isinstance(mean, float), f"mean must be a float (math.nan if it is not known), got {mean!r}"
        assert not mean < 0, f"mean must be at least 0, got {mean}"
        if not isinstance(law, IndependentLaw):
            assert law.subexponential() is None, "only an IndependentLaw has sub-exponential parameters"


def survives_a_round_trip(law: Law) -> None:
    """A law written as plain values, in JSON, is read back as the same law."""
    if type(law).__module__.partition(".")[0] != "belated" and name_of(type(law)) is None:
        return  # a class that cannot be imported, such as one of a script, has no name for files
    plain = law.to_dict()
    try:
        back = law_from_dict(json.loads(json.dumps(plain)))
    except (TypeError, ValueError, BelatedError) as error:
        raise AssertionError(f"{plain} is not read back as a law: {error}") from error
    assert back.to_dict() == plain, f"a law changes on the way through JSON: {back.to_dict()} instead of {plain}"
    count = _count(law)
    assert np.array_equal(_drawn(back, count), _drawn(law, count)), "a law that was read back draws other delays"


def states_its_distribution(law: Law) -> None:
    """Of an independent law, `cdfs` is a distribution with that mean, and draws are its quantiles."""
    if not isinstance(law, IndependentLaw):
        return
    least, greatest = law.support
    below = _below(law)
    assert (np.diff(below) >= 0).all(), "cdfs must not decrease"
    assert below.min() >= 0 and below.max() <= 1, "cdfs must lie in 0..1"
    if 0 < least <= FAR:
        assert below[least - 1] == 0, f"cdfs must be 0 below {least}, the least delay of support"
    if greatest < FAR:
        assert below[greatest] == 1, f"cdfs must be 1 at {greatest}, the greatest delay of support"
    uniform = stream(1, "delay").random(EPISODES)
    delays = _drawn(law, EPISODES)
    assert np.array_equal(delays, law.quantiles(uniform)), "draws must be the quantiles of one uniform number each"
    for u, delay in zip(uniform.tolist(), delays.tolist(), strict=True):
        assert delay == NEVER or law.cdf(delay - 1) < u <= law.cdf(delay), f"quantiles do not invert cdfs at {u}"
    reached = math.fsum(1 - below)  # E τ = Σ P(τ > n), at least what is summed
    assert law.mean >= reached * (1 - 1e-9) - 1e-9, f"the mean is at least {reached}, got {law.mean}"
    if greatest <= FAR:
        assert math.isclose(law.mean, reached, rel_tol=1e-9, abs_tol=1e-9), f"the mean is {reached}, got {law.mean}"


def _below(law: IndependentLaw) -> Floats:
    return law.cdfs(np.arange(FAR + 1))


def has_the_tail_that_it_states(law: Law) -> None:
    """E exp(g (τ - E τ)), summed as far as delays go here, is at most exp(v² g² / 2) whenever |g| <= 1/b."""
    tail = law.subexponential() if isinstance(law, IndependentLaw) else None
    if tail is None or not isinstance(law, IndependentLaw):
        return
    assert law.mean < math.inf, "a law with a sub-exponential tail has a mean"
    chances = np.diff(_below(law), prepend=0.0)
    delays, chances = np.flatnonzero(chances), chances[chances > 0]
    limit = 1 / tail.b if tail.b else 5 / max(tail.v, 1.0)
    for g in np.linspace(-limit, limit, 41):
        powers = g * (delays - law.mean) + np.log(chances)
        found = powers.max() + math.log(np.exp(powers - powers.max()).sum())
        assert found <= tail.v**2 * g**2 / 2 + 1e-6, f"{tail} does not hold at g = {g:g}"


ALL: tuple[Check, ...] = (
    draws_whole_delays,
    same_seed_same_delays,
    cutting_does_not_matter,
    tells_what_it_is,
    survives_a_round_trip,
    states_its_distribution,
    has_the_tail_that_it_states,
)
"""Every check of a law, in the order in which `check_law` runs them."""


def check_law(law: Law) -> None:
    """Run every check on `law`; the first contract it breaks is an `AssertionError`.

    >>> from belated import Bursts, Constant, Poisson
    >>> check_law(Bursts(calm=Constant(0), burst=Poisson(50), begin=0.01, end=0.1))
    """
    for check in ALL:
        check(law)

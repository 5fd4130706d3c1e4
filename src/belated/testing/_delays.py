"""The conformance suite of delay distributions: what every distribution must do, the library's and yours.

Each check takes a distribution, draws from it, and raises `AssertionError` with a sentence if the distribution breaks its contract. Run
them all with `check_delay`, or one by one in a test:

    @pytest.mark.parametrize("check", belated.testing._delays.ALL, ids=lambda check: check.__name__)
    def test_my_distribution(check):
        check(MyLaw())
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from belated._kernels.streams import stream
from belated._util.plugins import name_of
from belated.delays import NEVER, DelayDistribution, IndependentDelays, OutcomeDelays, delay_from_dict
from belated.errors import BelatedError
from belated.types import Floats, Ints

Distribution = DelayDistribution | OutcomeDelays
Check = Callable[[Distribution], None]

EPISODES = 400
"""How many delays are drawn."""
FAR = 20_000
"""Sums over the distribution of a distribution go up to this delay."""


def _count(distribution: Distribution) -> int:
    """Return how many delays to draw; a record may be shorter."""
    return min(EPISODES, distribution.lasts) if isinstance(distribution, DelayDistribution) else EPISODES


def _drawn(distribution: Distribution, count: int) -> Ints:
    return distribution.draw(stream(1, "delay"), count, 0, None)[0]


def draws_whole_delays(distribution: Distribution) -> None:
    """A draw is a pair: integers >= 0, one for each episode (and outcome), and a state that JSON can hold."""
    for count in (_count(distribution), 0):
        answer = distribution.draw(stream(1, "delay"), count, 0, None)
        assert isinstance(answer, tuple), f"draw must return a pair of delays and state, got {type(answer).__name__}"
        assert len(answer) == 2, f"draw must return a pair of delays and state, got {len(answer)} things"
        delays, state = answer
        outcomes = (len(distribution.distributions_by_outcome),) if isinstance(distribution, OutcomeDelays) else ()
        assert isinstance(delays, np.ndarray), f"draw must return an array of delays, got {type(delays).__name__}"
        assert delays.dtype == np.int64, f"delays must be 64-bit integers, got {delays.dtype}"
        assert delays.shape == (count, *outcomes), f"delays must have shape {(count, *outcomes)}, got {delays.shape}"
        assert delays.min(initial=0) >= 0, f"delays must be at least 0, got {delays.min()}"
        try:
            json.dumps(state, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"the state must be plain values that JSON can hold: {error}") from error


def same_seed_same_delays(distribution: Distribution) -> None:
    """Two runs with the same stream get the same delays, also when they ask in turns: a distribution keeps nothing itself."""
    count = _count(distribution)
    whole = _drawn(distribution, count)
    assert np.array_equal(_drawn(distribution, count), whole), (
        "with the same stream the delays differ, or a draw changes the distribution"
    )
    runs = [_Asking(distribution), _Asking(distribution)]
    for first in range(0, count, 50):
        left, right = (run.ask(first, min(50, count - first)) for run in runs)
        assert np.array_equal(left, right), (
            "two runs that ask in turns get different delays: what a distribution remembers belongs into its state"
        )


class _Asking:
    """A run, as far as delays go."""

    def __init__(self, distribution: Distribution) -> None:
        self.distribution, self.rng = distribution, stream(1, "delay")
        self.state: Any = None

    def ask(self, first: int, count: int) -> Ints:
        """Return the next delays, after the state went through JSON as in a checkpoint."""
        delays, state = self.distribution.draw(self.rng, count, first, self.state)
        self.state = json.loads(json.dumps(state))
        return delays


def cutting_does_not_matter(distribution: Distribution) -> None:
    """However episodes are cut into draws, their delays are the same; the state may go through JSON in between.

    So a checkpoint goes on to the same rows, and a longer run only adds delays to those of a shorter one.
    """
    count = _count(distribution)
    whole = _drawn(distribution, count)
    for size in (1, 7, 128):
        run = _Asking(distribution)
        parts = [run.ask(first, min(size, count - first)) for first in range(0, count, size)]
        assert np.array_equal(np.concatenate(parts), whole), (
            f"drawn by {size} the delays are others than drawn at once: use the same random numbers for each episode, "
            "look at `first`, and remember what is needed in the state"
        )


def tells_what_it_is(distribution: Distribution) -> None:
    """A distribution has a label, which is not empty, and a mean, which is a number."""
    assert isinstance(distribution.label, str), f"label must be a text, got {type(distribution.label).__name__}"
    assert distribution.label.strip(), "label must not be empty"
    if isinstance(distribution, DelayDistribution):
        mean: Any = getattr(distribution, "mean", None)
        assert isinstance(mean, float), f"mean must be a float (math.nan if it is not known), got {mean!r}"
        assert not mean < 0, f"mean must be at least 0, got {mean}"
        if not isinstance(distribution, IndependentDelays):
            assert distribution.subexponential() is None, "only an IndependentDelays has sub-exponential parameters"


def survives_a_round_trip(distribution: Distribution) -> None:
    """A distribution written as plain values, in JSON, is read back as the same distribution."""
    if type(distribution).__module__.partition(".")[0] != "belated" and name_of(type(distribution)) is None:
        return  # a class that cannot be imported, such as one of a script, has no name for files
    plain = distribution.to_dict()
    try:
        back = delay_from_dict(json.loads(json.dumps(plain)))
    except (TypeError, ValueError, BelatedError) as error:
        raise AssertionError(f"{plain} is not read back as a distribution: {error}") from error
    assert back.to_dict() == plain, (
        f"a distribution changes on the way through JSON: {back.to_dict()} instead of {plain}"
    )
    count = _count(distribution)
    assert np.array_equal(_drawn(back, count), _drawn(distribution, count)), (
        "a distribution that was read back draws other delays"
    )


def states_its_distribution(distribution: Distribution) -> None:
    """Of an independent distribution, `cdfs` is a distribution with that mean, and draws are its quantiles."""
    if not isinstance(distribution, IndependentDelays):
        return
    least, greatest = distribution.support
    below = _below(distribution)
    assert (np.diff(below) >= 0).all(), "cdfs must not decrease"
    assert below.min() >= 0 and below.max() <= 1, "cdfs must lie in 0..1"
    if 0 < least <= FAR:
        assert below[least - 1] == 0, f"cdfs must be 0 below {least}, the least delay of support"
    if greatest < FAR:
        assert below[greatest] == 1, f"cdfs must be 1 at {greatest}, the greatest delay of support"
    uniform = stream(1, "delay").random(EPISODES)
    delays = _drawn(distribution, EPISODES)
    assert np.array_equal(delays, distribution.quantiles(uniform)), (
        "draws must be the quantiles of one uniform number each"
    )
    for u, delay in zip(uniform.tolist(), delays.tolist(), strict=True):
        assert delay == NEVER or distribution.cdf(delay - 1) < u <= distribution.cdf(delay), (
            f"quantiles do not invert cdfs at {u}"
        )
    reached = math.fsum(1 - below)  # E τ = Σ P(τ > n), at least what is summed
    assert distribution.mean >= reached * (1 - 1e-9) - 1e-9, f"the mean is at least {reached}, got {distribution.mean}"
    if greatest <= FAR:
        assert math.isclose(distribution.mean, reached, rel_tol=1e-9, abs_tol=1e-9), (
            f"the mean is {reached}, got {distribution.mean}"
        )


def _below(distribution: IndependentDelays) -> Floats:
    return distribution.cdfs(np.arange(FAR + 1))


def has_the_tail_that_it_states(distribution: Distribution) -> None:
    """E exp(g (τ - E τ)), summed as far as delays go here, is at most exp(v² g² / 2) whenever |g| <= 1/b."""
    tail = distribution.subexponential() if isinstance(distribution, IndependentDelays) else None
    if tail is None or not isinstance(distribution, IndependentDelays):
        return
    assert distribution.mean < math.inf, "a distribution with a sub-exponential tail has a mean"
    chances = np.diff(_below(distribution), prepend=0.0)
    delays, chances = np.flatnonzero(chances), chances[chances > 0]
    limit = 1 / tail.b if tail.b else 5 / max(tail.v, 1.0)
    for g in np.linspace(-limit, limit, 41):
        powers = g * (delays - distribution.mean) + np.log(chances)
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
"""Every check of a distribution, in the order in which `check_delay` runs them."""


def check_delay(distribution: Distribution) -> None:
    """Run every check on `distribution`; the first contract it breaks is an `AssertionError`.

    >>> from belated import Bursts, Constant, Poisson
    >>> check_delay(Bursts(calm=Constant(0), burst=Poisson(50), begin=0.01, end=0.1))
    """
    for check in ALL:
        check(distribution)

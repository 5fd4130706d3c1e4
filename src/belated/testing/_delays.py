"""The conformance suite of delay distributions, built-in and yours.

Each check raises an `AssertionError` with an explanation if the distribution violates its contract. `check_delay` runs
them all.
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

Delay = DelayDistribution | OutcomeDelays
Check = Callable[[Delay], None]

EPISODES = 400
"""Number of delays drawn."""
FAR = 20_000
"""Sums over a distribution's support stop at this delay."""


def _count(delay: Delay) -> int:
    """Return how many delays to draw; a recorded sequence may be shorter."""
    return min(EPISODES, delay.lasts) if isinstance(delay, DelayDistribution) else EPISODES


def _drawn(delay: Delay, count: int) -> Ints:
    return delay.draw(stream(1, "delay"), count, 0, None)[0]


def draws_integer_delays(delay: Delay) -> None:
    """`draw` returns int64 delays >= 0, one for each episode (and outcome), and a JSON-serialisable state."""
    for count in (_count(delay), 0):
        answer = delay.draw(stream(1, "delay"), count, 0, None)
        assert isinstance(answer, tuple), f"draw must return a pair of delays and state, got {type(answer).__name__}"
        assert len(answer) == 2, f"draw must return a pair of delays and state, got {len(answer)} items"
        delays, state = answer
        outcomes = (len(delay.distributions_by_outcome),) if isinstance(delay, OutcomeDelays) else ()
        assert isinstance(delays, np.ndarray), f"draw must return an array of delays, got {type(delays).__name__}"
        assert delays.dtype == np.int64, f"delays must be 64-bit integers, got {delays.dtype}"
        assert delays.shape == (count, *outcomes), f"delays must have shape {(count, *outcomes)}, got {delays.shape}"
        assert delays.min(initial=0) >= 0, f"delays must be at least 0, got {delays.min()}"
        try:
            json.dumps(state, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"the state must be plain values that JSON can hold: {error}") from error


def same_seed_same_delays(delay: Delay) -> None:
    """Runs with the same seed get the same delays, even interleaved: the distribution itself stores nothing."""
    count = _count(delay)
    whole = _drawn(delay, count)
    assert np.array_equal(_drawn(delay, count), whole), (
        "delays differ between two draws with the same seed: draw must not change the distribution"
    )
    runs = [_Run(delay), _Run(delay)]
    for first in range(0, count, 50):
        left, right = (run.draw(first, min(50, count - first)) for run in runs)
        assert np.array_equal(left, right), (
            "interleaved runs with the same seed get different delays: keep what must be remembered in the state"
        )


class _Run:
    def __init__(self, delay: Delay) -> None:
        self.delay, self.rng = delay, stream(1, "delay")
        self.state: Any = None

    def draw(self, first: int, count: int) -> Ints:
        """Return the next delays; the state goes through JSON, as in a checkpoint."""
        delays, state = self.delay.draw(self.rng, count, first, self.state)
        self.state = json.loads(json.dumps(state))
        return delays


def splitting_draws_changes_nothing(delay: Delay) -> None:
    """Delays do not depend on how episodes are split into draws; the state may go through JSON in between.

    So a resumed run has the same delays, and a longer run extends a shorter one.
    """
    count = _count(delay)
    whole = _drawn(delay, count)
    for size in (1, 7, 128):
        run = _Run(delay)
        parts = [run.draw(first, min(size, count - first)) for first in range(0, count, size)]
        assert np.array_equal(np.concatenate(parts), whole), (
            f"delays drawn {size} at a time differ from those drawn at once: use the same random numbers for each "
            "episode, use `first`, and keep what must be remembered in the state"
        )


def has_a_label_and_a_mean(delay: Delay) -> None:
    """The label is not empty; the mean is a float."""
    assert isinstance(delay.label, str), f"label must be a string, got {type(delay.label).__name__}"
    assert delay.label.strip(), "label must not be empty"
    if isinstance(delay, DelayDistribution):
        mean: Any = getattr(delay, "mean", None)
        assert isinstance(mean, float), f"mean must be a float (math.nan if it is not known), got {mean!r}"
        assert not mean < 0, f"mean must be at least 0, got {mean}"
        if not isinstance(delay, IndependentDelays):
            assert delay.subexponential() is None, "only an IndependentDelays has sub-exponential parameters"


def survives_a_round_trip(delay: Delay) -> None:
    """`delay_from_dict(to_dict())` is the same distribution, through JSON."""
    if type(delay).__module__.partition(".")[0] != "belated" and name_of(type(delay)) is None:
        return  # a class that cannot be imported, such as one in a script, cannot be saved
    plain = delay.to_dict()
    try:
        back = delay_from_dict(json.loads(json.dumps(plain)))
    except (TypeError, ValueError, BelatedError) as error:
        raise AssertionError(f"delay_from_dict rejects {plain}: {error}") from error
    assert back.to_dict() == plain, f"to_dict changes in a round trip: {back.to_dict()} instead of {plain}"
    count = _count(delay)
    assert np.array_equal(_drawn(back, count), _drawn(delay, count)), (
        "delays differ after a round trip through to_dict and delay_from_dict"
    )


def cdfs_mean_and_draws_agree(delay: Delay) -> None:
    """For i.i.d. delays, `cdfs` is a distribution function with that mean, and draws are its quantiles."""
    if not isinstance(delay, IndependentDelays):
        return
    minimum, maximum = delay.support
    below = _below(delay)
    assert (np.diff(below) >= 0).all(), "cdfs must not decrease"
    assert below.min() >= 0 and below.max() <= 1, "cdfs must lie in 0..1"
    if 0 < minimum <= FAR:
        assert below[minimum - 1] == 0, f"cdfs must be 0 below {minimum}, the minimum of support"
    if maximum < FAR:
        assert below[maximum] == 1, f"cdfs must be 1 at {maximum}, the maximum of support"
    uniform = stream(1, "delay").random(EPISODES)
    delays = _drawn(delay, EPISODES)
    assert np.array_equal(delays, delay.quantiles(uniform)), "draws must be the quantiles of one uniform number each"
    for u, n in zip(uniform.tolist(), delays.tolist(), strict=True):
        assert n == NEVER or delay.cdf(n - 1) < u <= delay.cdf(n), f"quantiles do not invert cdfs at {u}"
    reached = math.fsum(1 - below)  # E τ = Σ P(τ > n), at least this partial sum
    assert delay.mean >= reached * (1 - 1e-9) - 1e-9, f"mean must be at least {reached}, got {delay.mean}"
    if maximum <= FAR:
        assert math.isclose(delay.mean, reached, rel_tol=1e-9, abs_tol=1e-9), (
            f"mean must be {reached}, got {delay.mean}"
        )


def _below(delay: IndependentDelays) -> Floats:
    return delay.cdfs(np.arange(FAR + 1))


def has_the_tail_it_claims(delay: Delay) -> None:
    """E exp(g (τ - E τ)), summed up to the delay `FAR`, is at most exp(v² g² / 2) whenever |g| <= 1/b."""
    tail = delay.subexponential() if isinstance(delay, IndependentDelays) else None
    if tail is None or not isinstance(delay, IndependentDelays):
        return
    assert delay.mean < math.inf, "a distribution with a sub-exponential tail has a mean"
    chances = np.diff(_below(delay), prepend=0.0)
    delays, chances = np.flatnonzero(chances), chances[chances > 0]
    limit = 1 / tail.b if tail.b else 5 / max(tail.v, 1.0)
    for g in np.linspace(-limit, limit, 41):
        powers = g * (delays - delay.mean) + np.log(chances)
        found = powers.max() + math.log(np.exp(powers - powers.max()).sum())
        assert found <= tail.v**2 * g**2 / 2 + 1e-6, f"{tail} does not hold at g = {g:g}"


DELAY_CHECKS: tuple[Check, ...] = (
    draws_integer_delays,
    same_seed_same_delays,
    splitting_draws_changes_nothing,
    has_a_label_and_a_mean,
    survives_a_round_trip,
    cdfs_mean_and_draws_agree,
    has_the_tail_it_claims,
)
"""Every check, in the order in which `check_delay` runs them."""


def check_delay(delay: Delay) -> None:
    """Raise `AssertionError` at the first check that `delay` fails.

    >>> from belated import Bursts, Constant, Poisson
    >>> check_delay(Bursts(calm=Constant(0), burst=Poisson(50), begin=0.01, end=0.1))
    """
    for check in DELAY_CHECKS:
        check(delay)

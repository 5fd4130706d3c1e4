"""Lets learners learn, correct and cancel at every scale that is accepted, and compares them with 200 digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from attacks.tally import Tally
from belated.decisions import DecisionLearner, Forgetting, Unknown

Floats = npt.NDArray[np.float64]

#: The error of a weight that is accepted: this part of its posterior standard deviation, and its own last bits.
WITHIN, LAST_BITS = 1e-9, 2.0**-50
SCALES = ("rows", "columns", "numbers", "times", "blunders")


class Row(NamedTuple):
    """A decision that counts: its features, its reward and its time in half-lives."""

    x: Floats
    reward: float
    time: float


class Exact(NamedTuple):
    """The posterior to 200 digits, rounded at the end."""

    mean: list[float]
    deviation: list[float]


def exact_posterior(
    rows: Sequence[Row], d: int, *, ridge: float, noise: float | None, now: float, digits: int = 200
) -> Exact:
    """Return mean and standard deviations of the weights, straight from the rows that count."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = digits, 10**6, -(10**6)
        two, zero = Decimal(2), Decimal(0)
        weights = [_weight(row.time) / two ** Decimal(now) for row in rows]
        table = [[Decimal(float(value)) for value in row.x] for row in rows]
        rewards = [Decimal(row.reward) for row in rows]
        total, squares = sum(weights, zero), sum((w * y * y for w, y in zip(weights, rewards, strict=True)), zero)
        lengths = sum((w * sum(v * v for v in x) for w, x in zip(weights, table, strict=True)), zero)
        if noise is not None:
            kappa = Decimal(ridge) * Decimal(noise) ** 2
        else:
            known = lengths > 0
            power = round(float((lengths / total).ln() / two.ln())) if known else 0
            kappa = Decimal(ridge) * two**power
        precision = [
            [sum((w * x[i] * x[j] for w, x in zip(weights, table, strict=True)), zero) for j in range(d)]
            for i in range(d)
        ]
        moment = [sum((w * x[i] * y for w, x, y in zip(weights, table, rewards, strict=True)), zero) for i in range(d)]
        for i in range(d):
            precision[i][i] += kappa
        inverse = _inverse(precision)
        mean = [sum((inverse[i][j] * moment[j] for j in range(d)), zero) for i in range(d)]
        variance = Decimal(1)
        if noise is not None:
            variance = Decimal(noise) ** 2
        elif total > 0 and squares > 0:
            fits = sum((moment[i] * mean[i] for i in range(d)), zero)
            explained = fits + kappa * sum(m * m for m in mean)
            settled = d - kappa * sum((inverse[i][i] for i in range(d)), zero)
            spread = sum((w * w for w in weights), zero) / total
            residual, left = max(squares - explained, squares / 10**12), max(total - spread * settled, zero)
            variance = (squares / total + residual) / (1 + left)
        return Exact(
            [float(each) for each in mean], [float((variance * inverse[i][i]).sqrt()) for i in range(d)]
        )  # fmt: skip


def _weight(time: float) -> Decimal:
    """Return 2^time, rounded as a float is."""
    whole = math.floor(time)
    return Decimal(math.exp2(time - whole)) * Decimal(2) ** whole


def _inverse(matrix: list[list[Decimal]]) -> list[list[Decimal]]:
    """Return the inverse of a positive definite matrix, by Gauss and Jordan."""
    d = len(matrix)
    wide = [[*row, *(Decimal(i == j) for j in range(d))] for i, row in enumerate(matrix)]
    for j in range(d):
        wide[j] = [value / wide[j][j] for value in wide[j]]
        for i in range(d):
            if i != j and wide[i][j]:
                factor = wide[i][j]
                wide[i] = [one - factor * two for one, two in zip(wide[i], wide[j], strict=True)]
    return [row[d:] for row in wide]


class History(NamedTuple):
    """A learner after a random history, the rows that count, and its settings."""

    kind: str
    learner: DecisionLearner
    rows: list[Row]
    ridge: float
    noise: float | None
    now: float
    """In half-lives."""


def history(rng: np.random.Generator) -> History:
    """Learn, correct and cancel at random, at scales of one kind."""
    d, n, kind = int(rng.integers(1, 6)), int(rng.integers(4, 70)), str(rng.choice(SCALES))
    noise = None if rng.random() < 0.6 else _size(rng)
    ridge = 1.0 if rng.random() < 0.5 else _size(rng)
    half = 16.0 if rng.random() < 0.4 else None
    learner = DecisionLearner(
        d, silence=Unknown(), noise="auto" if noise is None else noise, ridge=ridge,
        forgetting=None if half is None else Forgetting(decisions=half),
    )  # fmt: skip
    wide, usual, blunder = rng.uniform(0, 12), _size(rng), float(rng.choice([1e7, 1e9, 1e12]))
    columns = 10.0 ** rng.uniform(-wide, wide, d)
    rows: dict[str, Row] = {}
    blunders = []
    for i in range(n):
        x = _features(kind, rng, d, wide, columns, i)
        wrong = kind == "blunders" and i > n // 2
        x, reward = _clipped(x * blunder if wrong else x), float(_clipped(usual * rng.standard_normal()))
        made = learner.record(x)
        if rng.random() < 0.9:
            learner.feedback(made.id, reward)
            rows[made.id] = Row(x, reward, 0.0 if half is None else made.number / half)
            if wrong:
                blunders.append(made.id)
            if rng.random() < 0.3:
                learner.feedback(made.id, float(_clipped(_size(rng) * rng.standard_normal())), correction=True)
                learner.feedback(made.id, reward, correction=True)
        if rng.random() < 0.2:
            learner.cancel(learner.decide(rng.standard_normal((3, d))).id)  # looks at the posterior
        if rng.random() < 0.25 and rows:
            gone = str(rng.choice(list(rows)))
            learner.cancel(gone)
            del rows[gone]
    for gone in blunders:
        if gone in rows:
            learner.cancel(gone)
            del rows[gone]
    last = learner.record(np.ones(d)).number
    if last % 2:
        last = learner.record(np.ones(d)).number  # the prior is renewed eight times per half-life: now, too
    now = 0.0 if half is None else last / half
    return History(kind, learner, list(rows.values()), ridge, noise, now)


def _size(rng: np.random.Generator) -> float:
    return float(10.0 ** rng.uniform(-12, 12))


def _clipped(value: npt.ArrayLike) -> Floats:
    return np.clip(value, -1e12, 1e12)


def _features(kind: str, rng: np.random.Generator, d: int, wide: float, columns: Floats, i: int) -> Floats:
    x = rng.standard_normal(d)
    if kind == "rows":
        x *= 10.0 ** rng.uniform(-wide, wide)
    elif kind == "columns":
        x *= columns
    elif kind == "numbers":
        x *= 10.0 ** rng.uniform(-wide, wide, d)
    elif kind == "times":
        x[0] = 1.7e9 + 1e4 * i + x[0]
        x[1:2] = 1.0
    return x


def worst_error(made: History) -> float:
    """Return the largest error of a weight, in units of what is accepted."""
    found = made.learner.mean()
    if not np.isfinite(found).all():
        return math.inf
    exact = exact_posterior(made.rows, len(found), ridge=made.ridge, noise=made.noise, now=made.now)
    accepted = WITHIN * np.array(exact.deviation) + LAST_BITS * np.abs(exact.mean)
    return float(np.max(np.abs(found - exact.mean) / accepted))


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Compare `tries` random histories with 200 digits."""
    del folder
    for each in range(tries):
        if not tally.left():
            return
        with tally.attempt(f"history {each}"):
            made = history(rng)
            worst = worst_error(made)
            if not worst <= 1.0:
                raise AssertionError(f"of kind {made.kind!r}: a weight is off by {worst:.3g} times what is accepted")
            drawn = made.learner.decide(rng.standard_normal((3, made.learner.dimension)))
            if drawn.probability is None or not 0.0 < drawn.probability <= 1.0:
                raise AssertionError(f"of kind {made.kind!r}: the probability is {drawn.probability!r}")

"""Ways to draw from a posterior on sparse features, d = 10² … 10⁶: time of a plan and regret, side by side.

The problem is a linear bandit with late rewards: 20 of the d/A features of a context are not zero, those of rank r
about as often as 1/r, and every action has weights of its own. All ways draw from the same posterior, that of the prior
that the weights were drawn from, and plan at the same times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated.agents import DelayedLPSVI, DelayedPHE, DelayedPSVI
from belated.agents._regression import SampledValueIteration
from belated.agents._row_agent import RowAgent
from belated.agents._sparse import GROWTH, WeightAgent
from belated.delays import FeedbackQueue, Geometric
from belated.types import Feedback, SimulatorProblem, SparseVector, Trajectory
from belated_studies.reports.document import Cell, Chart, Row, Series, Table
from belated_studies.timing import growth

DIMENSIONS = (100, 316, 1_000, 3_162, 10_000, 100_000, 1_000_000)
ACTIONS, NONZERO, NOISE, DELAY = 5, 20, 0.5, 20
ROUNDS, SEEDS = 2000, 5
#: Matrices are made up to this d.
MOST_DENSE = 3_162
FACTOR, PRECONDITIONED, PLAIN = "exact, from a factor", "preconditioned chain, from a factor", "plain chain, by rows"
GRADIENTS, ASCENT = "conjugate gradients (PHE), by rows", "dual ascent (PSVI), by rows"
_COMMON: dict[str, Any] = {"draws": 1, "noise": NOISE, "ridge": 1.0, "cap": False}
#: The settings of each way, and whether its regressions are kept by their rows. A plain chain of small steps that has
#: mixed draws from γ/2 times Ω⁻¹.
VARIANTS: dict[str, tuple[SampledValueIteration, bool]] = {
    FACTOR: (DelayedPSVI(**_COMMON), False),
    PRECONDITIONED: (DelayedLPSVI(sampler="preconditioned", **_COMMON), False),
    PLAIN: (DelayedLPSVI(temperature=2.0, **_COMMON), True),
    GRADIENTS: (DelayedPHE(**_COMMON), True),
    ASCENT: (DelayedPSVI(**_COMMON), True),
}


class SparseDraw(NamedTuple):
    """What one way came to in one run."""

    variant: str
    dimension: int
    seed: int
    seconds: float
    """Of CPU for a plan after all rounds, the median of three."""
    regret: float
    chance: float
    """The regret of actions taken at random."""


class Given:
    """Features as they are."""

    def __init__(self, size: int) -> None:
        self.size = size

    def encode(self, observation: SparseVector) -> SparseVector:
        return observation


def measure(
    dimensions: Sequence[int] = DIMENSIONS, *, rounds: int = ROUNDS, seeds: int = SEEDS
) -> Iterator[SparseDraw]:
    """Play and time every way at every dimension."""
    for dimension in dimensions:
        for variant, (_, by_rows) in VARIANTS.items():
            if by_rows or dimension <= MOST_DENSE:
                for seed in range(seeds):
                    yield play(variant, dimension, rounds, seed)


def play(variant: str, dimension: int, rounds: int, seed: int) -> SparseDraw:
    """Play one run; contexts, noise and delays are those of the seed."""
    settings, by_rows = VARIANTS[variant]
    size = dimension // ACTIONS
    problem = SimulatorProblem(Given(size), 1, actions=ACTIONS, reward_range=(-np.inf, np.inf))
    agent = (RowAgent if by_rows else WeightAgent)(settings, problem, settings.weight_rule(problem))
    world, rng = np.random.default_rng([seed, dimension]), np.random.default_rng([seed, dimension, 1])
    theta, delays = world.standard_normal((ACTIONS, size)), Geometric(mean=DELAY).sample(world, rounds)
    queue: FeedbackQueue[Trajectory] = FeedbackQueue()
    policy, planned, regret, chance = agent.plan(rng), 0.0, 0.0, 0.0
    for k in range(rounds):
        agent.learn([Feedback(*each) for each in queue.arrived(k)])
        if agent.progress.arrived >= GROWTH * planned:
            policy, planned = agent.plan_now(rng), agent.progress.arrived
        places = np.unique((size ** world.random(NONZERO)).astype(np.int64) - 1)
        context = SparseVector(places, np.full(places.size, NONZERO**-0.5))
        means = theta[:, places] @ context.values
        action = policy.act(0, context)
        regret, chance = regret + float(means.max() - means[action]), chance + float(means.max() - means.mean())
        reward = means[action] + NOISE * world.standard_normal()
        queue.add(k, int(delays[k]), Trajectory([context, context], np.array([action]), np.array([reward]), True))
    agent.learn([Feedback(*each) for each in queue.arrived(rounds + int(delays.max()) + 1)])
    seconds = float(np.median([_cpu_seconds(agent, rng) for _ in range(3)]))
    return SparseDraw(variant, dimension, seed, seconds, regret, chance)


def _cpu_seconds(agent: RowAgent | WeightAgent, rng: np.random.Generator) -> float:
    with threadpool_limits(1):
        began = time.process_time()
        agent.plan_now(rng)
        return time.process_time() - began


def _by_dimension(draws: Sequence[SparseDraw], variant: str) -> dict[int, list[SparseDraw]]:
    """Return the runs of one way, by dimension."""
    chosen = [each for each in draws if each.variant == variant]
    return {d: [each for each in chosen if each.dimension == d] for d in sorted({each.dimension for each in chosen})}


def _milliseconds(draws: Sequence[SparseDraw], variant: str) -> dict[int, float]:
    """Return the median time of a plan, by dimension."""
    runs = _by_dimension(draws, variant)
    return {d: 1e3 * float(np.median([each.seconds for each in every])) for d, every in runs.items()}


def exponent(draws: Sequence[SparseDraw], variant: str) -> float:
    """Return the exponent with which the time of a plan grows."""
    times = _milliseconds(draws, variant)
    return growth(list(times), list(times.values()))


def told(draws: Sequence[SparseDraw]) -> str:
    """Tell what the ways to draw take on sparse features."""
    factor, plain, gradients, ascent = (_milliseconds(draws, variant) for variant in (FACTOR, PLAIN, GRADIENTS, ASCENT))
    dense, largest = max(factor), max(ascent)
    growing = ", ".join(f"d^{exponent(draws, variant):.2f}" for variant in (FACTOR, PLAIN, GRADIENTS, ASCENT))
    return (
        f"On sparse features a plan takes {factor[dense]:.0f} ms with a factor, {plain[dense]:.0f} ms with a plain "
        f"chain, {gradients[dense]:.0f} ms by conjugate gradients and {ascent[dense]:.1f} ms by dual ascent at "
        f"d = {dense:,}; at d = {largest:,}, without a factor, {plain[largest]:.0f}, {gradients[largest]:.0f} and "
        f"{ascent[largest]:.1f} ms; the exponents are {growing}."
    )


def paragraph(draws: Sequence[SparseDraw]) -> str:
    """Return what the section says of sparse features."""
    return (
        f"On sparse features, {NONZERO} of d/{ACTIONS} not zero, no matrix has to be made: a chain, conjugate "
        "gradients and dual coordinate ascent need only products with the rows that have arrived, and what was never "
        "seen takes no time. A perturbed regression that is solved is an exact draw; a chain is one only when it has "
        f"mixed. {told(draws)}"
    )


def chart(draws: Sequence[SparseDraw]) -> Chart:
    """Return the time of a plan against d."""
    series = []
    for variant in VARIANTS:
        readings = {d: [1e3 * each.seconds for each in every] for d, every in _by_dimension(draws, variant).items()}
        low, middle, high = (np.array([f(each) for each in readings.values()]) for f in (min, np.median, max))
        series.append(Series(name=variant, x=np.array(list(readings), np.float64), y=middle, low=low, high=high))
    return Chart(
        id="computation-sparse-chart",
        title="Time of a plan on sparse features",
        caption="A linear bandit after all rounds; CPU time, median and range of the runs.",
        x_label="feature dimension d",
        y_label="milliseconds a plan",
        series=series,
        log_x=True,
        log_y=True,
    )


def table(draws: Sequence[SparseDraw]) -> Table:
    """Return growth and regret of every way."""
    dimensions = sorted({each.dimension for each in draws})
    rows: list[Row] = []
    for variant in VARIANTS:
        row: list[str | Cell] = [variant, Cell(value=exponent(draws, variant), digits=2)]
        runs = _by_dimension(draws, variant)
        for d in dimensions:
            shares = np.array([each.regret / each.chance for each in runs.get(d, ())])
            error = float(shares.std(ddof=1)) / math.sqrt(shares.size) if shares.size > 1 else math.nan
            mean = float(shares.mean()) if shares.size else math.nan
            row.append(Cell(value=mean, low=mean - error, high=mean + error) if shares.size else "–")
        rows.append(row)
    return Table(
        id="computation-sparse-table",
        title="Sparse features: growth of the time of a plan, and regret",
        caption="Regret as a part of that of random actions, less and plus a standard error; contexts, delays and the "
        f"times of plans are the same for all. A factor was made up to d = {MOST_DENSE:,}.",
        columns=["Way to draw", "Measured exponent", *(f"d = {d:,}" for d in dimensions)],
        rows=rows,
    )

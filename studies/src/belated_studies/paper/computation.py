"""The computational claim: time per episode against the feature dimension, measured side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from belated._kernels.jit import borrowed, entry_point
from belated._kernels.streams import stream
from belated.agents import CompiledSettings, DelayedLPSVI, DelayedPHE, DelayedPSVI, DelayedUCBVI
from belated.agents._base import ANYWHERE, Arrival, Record
from belated.environments import RandomLinearMDP
from belated.types import Ints
from belated_studies.paper import sparse_draws
from belated_studies.paper.refactorising import RefactorisingPSVI
from belated_studies.paper.setting import PaperSize
from belated_studies.paper.sparse_draws import SparseDraw
from belated_studies.reports.document import Cell, Chart, Row, Section, Series, Table
from belated_studies.study import Artefact, Measurement, Played
from belated_studies.timing import Spread, growth, timed

DIMENSIONS = (10, 32, 100, 316, 1000)
HORIZON = 5
EXACT, PLAIN = "PSVI, rank one", "LPSVI, plain"

#: What is timed, and the cost per episode that the paper states for it, at N = 40 and M = 2.
VARIANTS: dict[str, tuple[CompiledSettings, str]] = {
    "PSVI, refactorising": (RefactorisingPSVI(), "O(d³)"),
    EXACT: (DelayedPSVI(), "O(d³)"),
    PLAIN: (DelayedLPSVI(), "O(N + d)"),
    "LPSVI, collapsed": (DelayedLPSVI(sampler="collapsed"), "O(N + d)"),
    "LPSVI, preconditioned": (DelayedLPSVI(sampler="preconditioned"), "O(N + d)"),
    "PHE, conjugate gradients": (DelayedPHE(), "not stated"),
    "UCBVI": (DelayedUCBVI(), "not stated"),
}


class Timing(NamedTuple):
    """Seconds per episode of one variant at one dimension: median, least and most of the repeats."""

    variant: str
    dimension: int
    seconds: float
    low: float
    high: float


def measure(
    dimensions: Sequence[int] = DIMENSIONS, *, repeats: int = 5, least_seconds: float = 0.05
) -> Iterator[Timing]:
    """Time every variant at every dimension, one arrival an episode, in one go on one core."""
    for dimension in dimensions:
        world = RandomLinearMDP(states=20, actions=10, dimension=dimension, horizon=HORIZON)
        for name, (settings, _) in VARIANTS.items():
            yield Timing(name, dimension, *_seconds(world, settings, repeats, least_seconds))


def _seconds(world: RandomLinearMDP, settings: CompiledSettings, repeats: int, least_seconds: float) -> Spread:
    """Return seconds per episode."""
    agent, rng = settings.start(world.problem), stream(0, "agent")
    trajectory = world.rollout(world.optimal_policy(), stream(0, "environment"))
    policy = np.zeros((world.horizon, world.states), np.int64)

    arrival = Arrival(0, 0, trajectory.rows, trajectory.actions, trajectory.rewards, False, 0)

    def work(count: int) -> None:
        _episodes(agent.record, rng, policy, arrival, count)

    return timed(work, repeats=repeats, least_seconds=least_seconds)


@entry_point
def _episodes(record: Record, rng: np.random.Generator, policy: Ints, arrival: Arrival, count: int) -> None:
    """Plan, and learn one trajectory, `count` times: all that depends on d, without the environment."""
    record = borrowed(record)
    for _ in range(count):
        record.plan(rng, ANYWHERE, policy)
        record.learn(arrival)
        record.settle()


def exponent(timings: Sequence[Timing], variant: str, *, above: int = 100) -> float:
    """Return the slope of log time against log d for `variant`, fitted over d ≥ `above`."""
    chosen = [timing for timing in timings if timing.variant == variant and timing.dimension >= above]
    return growth([timing.dimension for timing in chosen], [timing.seconds for timing in chosen])


def section(played: Played[PaperSize]) -> Section:
    """Return time per episode against d, and how it grows."""
    timings: Sequence[Timing] = played.measured["computation"]
    sparse: Sequence[SparseDraw] = played.measured.get(SPARSE.name, ())
    chart = Chart(
        id="computation-chart",
        title="Time to plan one episode and learn one trajectory",
        caption=f"H = {HORIZON}, M = 2, N = 40; median and range of the repeats, one core, measured in one go.",
        x_label="feature dimension d",
        y_label="microseconds per episode",
        series=[_series(timings, variant) for variant in VARIANTS],
        log_x=True,
        log_y=True,
    )
    return Section(
        id="computation",
        title="The computational claim",
        paragraphs=[
            "The paper counts O(d³) for an exact draw and O(N + d) for a Langevin draw, and so recommends Langevin for "
            "large d. A gradient step is a product with Ω, which is O(d²), and a late trajectory changes Ω by rank "
            "one, so the factor of an exact draw can be updated in O(d²) too. Measured side by side:",
            *([sparse_draws.paragraph(sparse)] if sparse else []),
        ],
        charts=[chart, *([sparse_draws.chart(sparse)] if sparse else [])],
        tables=[_growth(timings), *([sparse_draws.table(sparse)] if sparse else [])],
    )


def _series(timings: Sequence[Timing], variant: str) -> Series:
    chosen = [timing for timing in timings if timing.variant == variant]
    d, seconds, low, high = (
        np.array([getattr(timing, name) for timing in chosen], dtype=np.float64)
        for name in ("dimension", "seconds", "low", "high")
    )
    return Series(name=variant, x=d, y=1e6 * seconds, low=1e6 * low, high=1e6 * high)


def _growth(timings: Sequence[Timing]) -> Table:
    largest = max(timing.dimension for timing in timings)
    at_largest = {timing.variant: timing.seconds for timing in timings if timing.dimension == largest}
    rows: list[Row] = [
        [
            variant,
            claim,
            Cell(value=exponent(timings, variant), digits=2),
            Cell(value=1e3 * at_largest[variant], digits=2),
            Cell(value=at_largest[variant] / at_largest[EXACT], digits=1),
        ]
        for variant, (_, claim) in VARIANTS.items()
    ]
    return Table(
        id="computation-table",
        title="Growth with d",
        caption="The exponent is the slope of log time against log d over d ≥ 100.",
        columns=[
            "Variant",
            "Cost the paper states, in d",
            "Measured exponent",
            f"Milliseconds at d = {largest}",
            f"Times {EXACT}",
        ],
        rows=rows,
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Tell how the time of exact draws and of chains grows."""
    timings: Sequence[Timing] = played.measured["computation"]
    sparse: Sequence[SparseDraw] = played.measured.get(SPARSE.name, ())
    seconds = {(timing.variant, timing.dimension): timing.seconds for timing in timings}
    ratios = [seconds[PLAIN, d] / seconds[EXACT, d] for variant, d in seconds if variant == EXACT]
    return [
        f"Time per episode grows like d^{exponent(timings, EXACT):.1f} for exact draws with rank-one updates and like "
        f"d^{exponent(timings, PLAIN):.1f} for plain Langevin chains (paper: d³ and d); a plain chain takes "
        f"{min(ratios):.1f} to {max(ratios):.1f} times as long as an exact draw.",
        *([sparse_draws.told(sparse)] if sparse else []),
    ]


SPARSE: Measurement[PaperSize] = Measurement(
    name="computation-sparse",
    kind=SparseDraw,
    measure=lambda size: sparse_draws.measure(
        rounds=min(size.episodes, sparse_draws.ROUNDS), seeds=min(size.seeds, sparse_draws.SEEDS)
    ),
)
ARTEFACT = Artefact(
    id="computation",
    order=8,
    section=section,
    measurements=[Measurement(name="computation", kind=Timing, measure=lambda size: measure()), SPARSE],
    findings=findings,
    extra=True,
)

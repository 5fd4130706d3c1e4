"""What grows with d, up to 4096, and where one way to learn many arrivals overtakes another: tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.block_update import block_update
from belated._kernels.gaussian import rank_one_update
from belated._kernels.jit import copy, entry_point
from belated._kernels.streams import stream
from belated.agents import CompiledSettings, DelayedLPSVI, DelayedPHE, DelayedPSVI, RandomPolicy
from belated.environments import RandomLinearMDP
from belated.types import Floats
from belated_studies.paper.refactorising import RefactorisingPSVI
from belated_studies.reports.document import Cell, Chart, Document, Section, Series, Table
from belated_studies.timing import Spread, seconds, spread, timed
from benchmarks.scene import agent_episodes, make_scene

DIMENSIONS = (10, 64, 256, 1024, 4096)
#: The longest horizon whose factors fit, H·d²·8 bytes being 256 MB at d = 4096.
HORIZON = 2
#: Trajectories learned before the clock starts: the time of conjugate gradients grows with the pairs visited.
LEARNED = 200
#: What is timed, and the largest d at which it is bearable.
AGENTS: dict[str, tuple[CompiledSettings, int]] = {
    "PSVI, rank one": (DelayedPSVI(), 4096),
    "PSVI, float32": (DelayedPSVI(storage="float32"), 4096),
    "PHE, conjugate gradients": (DelayedPHE(), 4096),
    "PSVI, refactorising": (RefactorisingPSVI(), 1024),
    "LPSVI, plain": (DelayedLPSVI(), 4096),
}

ARRIVALS = (1, 4, 8, 16, 24, 32, 64, 128, 256)
#: Ways to bring r observations into a factor.
UPDATES = ("rank one", "block", "refactorising")


class Timing(NamedTuple):
    """Seconds of one plan and one arrival of an agent at one dimension."""

    agent: str
    dimension: int
    seconds: Spread


class Update(NamedTuple):
    """Seconds to bring so many observations at once into a factor of dimension d: median of the repeats."""

    way: str
    dimension: int
    arrivals: int
    seconds: float


def measure_agents(
    *, dimensions: Sequence[int] = DIMENSIONS, repeats: int = 3, least_seconds: float = 0.05
) -> list[Timing]:
    """Time one plan and one arrival of every agent, up to the largest d at which it is bearable."""
    found = []
    for dimension in dimensions:
        world = RandomLinearMDP(states=20, actions=10, dimension=dimension, horizon=HORIZON)
        for name, (settings, largest) in AGENTS.items():
            if dimension <= largest:
                scene = make_scene(world, settings, LEARNED, explorer=RandomPolicy())
                taken = timed(agent_episodes(scene), repeats=repeats, least_seconds=least_seconds)
                found.append(Timing(name, dimension, taken))
    return found


@entry_point
def update(way: int, factor: Floats, x: Floats) -> None:
    """Replace U by the factor of UᵀU + XXᵀ, shape of X (d, r), in one of the `UPDATES`."""
    if way == 0:
        for column in x.T.copy():
            rank_one_update(factor, column)
    elif way == 1:
        block_update(factor, x)
    else:
        copy(np.linalg.cholesky(np.dot(factor.T, factor) + np.dot(x, x.T)).T, factor)


def measure_updates(
    *, dimensions: Sequence[int] = (64, 256, 1024), counts: Sequence[int] = ARRIVALS, repeats: int = 5
) -> list[Update]:
    """Time every way to learn r observations at once; where the curves cross, `posterior.block` changes the way."""
    found, rng = [], stream(0, "timing")
    with threadpool_limits(1):
        for dimension in dimensions:
            factor = np.eye(dimension)
            update(0, factor, rng.standard_normal((dimension, 3 * dimension)))  # a factor that is dense
            for count in counts:
                x = rng.standard_normal((dimension, count))
                for way, name in enumerate(UPDATES):
                    _, *taken = (_seconds_of_update(way, factor, x) for _ in range(repeats + 1))  # the first compiles
                    found.append(Update(name, dimension, count, spread(taken).median))
    return found


def _seconds_of_update(way: int, factor: Floats, x: Floats) -> float:
    spare, used = factor.copy(), x.copy()
    return seconds(lambda: update(way, spare, used))


def large_document(tell: Callable[[str], None] = lambda text: None) -> Document:
    """Measure, and return the tables and charts."""
    tell("measuring large d")
    timings = measure_agents()
    tell("measuring many arrivals at once")
    return describe(timings, measure_updates())


def describe(timings: Sequence[Timing], updates: Sequence[Update]) -> Document:
    """Return what was measured as a document."""
    return Document(
        title="Large dimensions",
        summary=[_crossing(updates, dimension) for dimension in sorted({each.dimension for each in updates})],
        facts={"Steps per episode": f"{HORIZON}", "Cores": "1"},
        sections=[_growth(timings), _arrivals(updates)],
    )


def _growth(timings: Sequence[Timing]) -> Section:
    series: list[Series] = []
    rows: list[list[str | Cell]] = []
    for agent in AGENTS:
        at = {timing.dimension: timing.seconds.times(1e6) for timing in timings if timing.agent == agent}
        if not at:
            continue
        median, low, high = np.array(list(at.values())).T
        series.append(Series(name=agent, x=np.array(list(at), np.float64), y=median, low=low, high=high))
        cells = [
            Cell(value=at[n].median, low=at[n].low, high=at[n].high, digits=0)
            if n in at
            else Cell(value=None, note="too slow")
            for n in DIMENSIONS
        ]
        rows.append([agent, *cells])
    about = f"One plan and one arrival, H = {HORIZON}, M = 2, N = 40, after {LEARNED} trajectories; one core."
    return Section(
        id="growth",
        title="Time against d",
        charts=[
            Chart(
                id="large-d",
                title="Time to plan one episode and learn one trajectory",
                caption=f"{about} Median and range of the repeats.",
                x_label="feature dimension d",
                y_label="microseconds per episode",
                series=series,
                log_x=True,
                log_y=True,
            )
        ],
        tables=[
            Table(
                id="large-d-table",
                title="Microseconds per episode",
                caption=about,
                columns=["Agent", *(f"d = {n}" for n in DIMENSIONS)],
                rows=rows,
            )
        ],
    )


def _arrivals(updates: Sequence[Update]) -> Section:
    charts = []
    for dimension in sorted({each.dimension for each in updates}):
        series = []
        for way in UPDATES:
            chosen = [each for each in updates if each.way == way and each.dimension == dimension]
            x, y = (np.array([getattr(each, name) for each in chosen], np.float64) for name in ("arrivals", "seconds"))
            series.append(Series(name=way, x=x, y=1e6 * y))
        charts.append(
            Chart(
                id=f"arrivals-{dimension}",
                title=f"Many arrivals at once, d = {dimension}",
                caption="Time to bring r observations into one factor; median of the repeats, one core.",
                x_label="arrivals r",
                y_label="microseconds",
                series=series,
                log_x=True,
                log_y=True,
            )
        )
    return Section(id="arrivals", title="Many arrivals at once", charts=charts)


def _crossing(updates: Sequence[Update], dimension: int) -> str:
    """Return from how many arrivals on blocks are faster, as a sentence."""
    taken = {(each.way, each.arrivals): each.seconds for each in updates if each.dimension == dimension}
    counts = sorted({count for _, count in taken})
    facts = []
    for other in ("rank one", "refactorising"):
        wins = [count for count in counts if taken["block", count] < taken[other, count]]
        facts.append(f"a block is faster than {other} for {_range(wins, counts)}")
    return f"d = {dimension}: {'; '.join(facts)}."


def _range(wins: list[int], counts: list[int]) -> str:
    if not wins:
        return "no number of arrivals"
    if wins == counts:
        return "every number of arrivals"
    return "r in " + ", ".join(str(count) for count in wins)

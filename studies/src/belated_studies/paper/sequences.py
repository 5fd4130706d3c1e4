"""The sequence α of the synthetic MDP, which the paper does not print: what depends on it, and which fits best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import isclose
from typing import NamedTuple

import numpy as np

from belated._kernels.streams import stream
from belated.agents import DelayedLPSVI, Settings
from belated.environments import SyntheticLinearMDP
from belated.environments._linear import ALPHA
from belated.evaluation import episodes_to_best
from belated.runner import Experiment, Results
from belated.types import Floats
from belated_studies.cells_and_curves import name_of
from belated_studies.paper import published
from belated_studies.paper.agents import five
from belated_studies.paper.comparing import close
from belated_studies.paper.setting import DELAYS, FULL, LITERAL, PaperSize
from belated_studies.reports.document import Cell, Chart, Row, Section, Series, Table
from belated_studies.study import Artefact, Played

COUNT, A_FEW, SEEDS, BLOCKS = 12, 4, 6, 100
"""Sequences, those of a smaller size, seeds, and rows of a run: cumulative regret tells the mean of a block."""
SIGMA = "lpsvi-sigma"
"""LPSVI with σ = 0.1 in its loss."""
PUBLISHED = {"psvi-0.1": "psvi", "lpsvi": "lpsvi", SIGMA: "lpsvi", "ucbvi": "ucbvi"}
"""Under which name the paper has each agent."""
NAMES = {"lpsvi": name_of("lpsvi"), SIGMA: "Delayed-LPSVI, σ = 0.1 in the loss"}


class Number(NamedTuple):
    """A published number, and whose it is."""

    agent: str
    delay: str
    value: float


#: Table 2, and what Table 4 has beyond it for the same |A| = 20.
RETURNS = [
    *(
        Number("psvi-0.1" if agent == "psvi" else agent, delay, one.value)
        for agent, row in published.RETURN_BY_DELAY.items()
        for delay, one in row.items()
    ),
    *(Number(agent, "poisson", published.RETURN_BY_SIZE[agent][40].value) for agent in ("psvi-0.3", "psvi-0.2")),
]
#: Table 3, for the same |A|.
EPISODES = [Number(agent, "poisson", row[40].value) for agent, row in published.EPISODES_BY_SIZE.items()]


@cache
def sequences(count: int) -> Sequence[tuple[int, ...]]:
    """Return the library's α, and others drawn evenly from all that have the published optimum.

    >>> {round(SyntheticLinearMDP(alpha=alpha).optimal_value, 12) for alpha in sequences(5)}
    {11.96}
    """
    found, rng = [ALPHA], stream(0, "alpha")
    while len(found) < count:
        drawn = tuple(rng.integers(2, size=len(ALPHA)).tolist())
        optimum = SyntheticLinearMDP(actions=2, alpha=drawn).optimal_value
        if drawn not in found and isclose(optimum, published.OPTIMAL_RETURN):
            found.append(drawn)
    return found


def played_sequences(size: PaperSize) -> Sequence[str]:
    """Return the sequences of a size, as they are written."""
    return ["".join(map(str, alpha)) for alpha in sequences(COUNT if size.episodes >= FULL.episodes else A_FEW)]


def agents() -> dict[str, Settings]:
    """Return the agents with printed settings; chains are drawn from their exact N-step distribution: faster."""
    printed = five(LITERAL)
    lpsvi = printed["lpsvi"]
    assert isinstance(lpsvi, DelayedLPSVI)
    return {
        **printed,
        "lpsvi": replace(lpsvi, sampler="collapsed"),
        SIGMA: replace(lpsvi, sampler="collapsed", noise=0.1),
    }


def experiments(size: PaperSize) -> list[Experiment]:
    """Return every sequence with the delays of Table 2."""
    worlds = {
        written: SyntheticLinearMDP(actions=20, alpha=[int(bit) for bit in written])
        for written in played_sequences(size)
    }
    return [
        Experiment(
            name="sequences",
            environments=worlds,
            agents=agents(),
            delays=DELAYS,
            episodes=size.episodes,
            seeds=min(SEEDS, size.seeds),
            record_every=max(1, size.episodes // BLOCKS),
        )
    ]


class Curves(NamedTuple):
    """What was played, by sequence."""

    played: Played[PaperSize]

    @property
    def every(self) -> int:
        """Episodes of a block."""
        return self.played.experiments["sequences"].record_every

    def of(self, written: str, number: Number) -> Floats:
        """Return the mean value of every block of episodes, (seeds, blocks)."""
        results: Results = self.played.results["sequences"]
        pick = {"agent": number.agent, "delay": number.delay, "environment": written}
        lost = np.diff(results.regret(**pick), prepend=0.0, axis=1)
        return results.array("optimal", **pick) - lost / np.diff(results.episodes, prepend=-1)

    def returns(self, written: str, number: Number) -> Floats:
        """Return the value upon convergence of every seed: the mean over the last tenth of episodes."""
        blocks = self.of(written, number)
        found: Floats = blocks[:, -max(1, blocks.shape[1] // 10) :].mean(axis=1)
        return found

    def error(self, written: str, seeds: slice) -> float:
        """Return the mean relative distance from the published returns, over these seeds."""
        return float(
            np.mean([abs(self.returns(written, one)[seeds].mean() - one.value) / one.value for one in RETURNS])
        )

    def episodes(self, written: str, number: Number) -> int:
        """Return after how many episodes the mean of 50 is at 99 % of its best, to the length of a block."""
        return self.every * episodes_to_best(self.of(written, number), max(1, 50 // self.every))


def halves(seeds: int) -> tuple[slice, slice]:
    """Return the seeds that choose a sequence, and those that then judge it: others, where there are any.

    >>> halves(6), halves(1)
    ((slice(0, 3, None), slice(3, 6, None)), (slice(0, 1, None), slice(0, 1, None)))
    """
    half = (seeds + 1) // 2
    return slice(0, half), slice(half, seeds) if seeds > 1 else slice(0, 1)


class Fit(NamedTuple):
    """How well a sequence fits the published returns, on the seeds that choose and on those that judge."""

    written: str
    chosen_by: float
    judged_by: float


def fits(curves: Curves) -> list[Fit]:
    """Return all sequences, the best fit first."""
    experiment = curves.played.experiments["sequences"]
    choosing, judging = halves(len({run.seed for run in experiment.runs()}))
    found = [
        Fit(written, curves.error(written, choosing), curves.error(written, judging))
        for written in played_sequences(curves.played.size)
    ]
    return sorted(found, key=lambda one: one.chosen_by)


class Spread(NamedTuple):
    """Values upon convergence of one agent under one delay: the mean over seeds of each sequence, and two spreads."""

    means: Floats
    between: float
    """Standard deviation between sequences, without what the seeds add to it."""
    within: float
    """Standard deviation between the seeds of a sequence."""


def spread(values: Floats) -> Spread:
    """Return what `values` (sequences, seeds) vary with.

    >>> spread(np.array([[1.0, 3.0], [5.0, 7.0]])).means.tolist()
    [2.0, 6.0]
    """
    means, seeds = values.mean(axis=1), values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean()) if seeds > 1 else 0.0
    between = max(0.0, float(means.var(ddof=1)) - within / seeds)
    return Spread(means, float(np.sqrt(between)), float(np.sqrt(within)))


def spreads(curves: Curves) -> dict[tuple[str, str], Spread]:
    """Return the spread of every agent of Table 2 under every delay."""
    each = played_sequences(curves.played.size)
    return {
        (agent, delay): spread(np.array([curves.returns(one, Number(agent, delay, 0.0)) for one in each]))
        for agent in ("psvi-0.1", "lpsvi", SIGMA, "ucbvi")
        for delay in DELAYS
    }


def section(played: Played[PaperSize]) -> Section:
    """Return how much depends on the sequence, and how well each fits the published numbers."""
    curves = Curves(played)
    count, seeds = len(played_sequences(played.size)), played.results["sequences"].frame["seed"].n_unique()
    return Section(
        id="sequences",
        title="The sequence α that the paper does not print",
        paragraphs=[
            "Which state follows the good pair is given by 20 zeros and ones that are not published. Of the 1,048,576 "
            "such sequences 168,960 have the published optimum of 11.96. The library's own and "
            f"{count - 1} drawn evenly from them are played with the printed hyper-parameters, {seeds} seeds each.",
        ],
        charts=[_chart(curves)],
        tables=[_spread_table(curves), _fit_table(curves)],
    )


def _chart(curves: Curves) -> Chart:
    found = spreads(curves)
    return Chart(
        id="sequences-chart",
        title="Printed settings over sequences with the same optimum",
        caption=(
            "Value upon convergence under Poisson delays, |A| = 20, of every sequence; for each agent from the "
            "sequence that is worst for it to the one that is best."
        ),
        x_label="sequence, by rank",
        y_label="value upon convergence",
        series=[
            Series(
                name=NAMES.get(agent, name_of(agent)),
                x=np.arange(1, len(one.means) + 1, dtype=np.float64),
                y=np.sort(one.means),
            )
            for (agent, delay), one in found.items()
            if delay == "poisson"
        ],
        level=("optimal", published.OPTIMAL_RETURN),
    )


def _spread_table(curves: Curves) -> Table:
    rows: list[Row] = []
    for (agent, delay), one in spreads(curves).items():
        theirs = published.RETURN_BY_DELAY[PUBLISHED[agent]][delay].value
        numbers = (theirs, one.means[0], one.means.min(), float(np.median(one.means)), one.means.max())
        rows.append(
            [
                NAMES.get(agent, name_of(agent)),
                delay,
                *(Cell(value=float(number)) for number in (*numbers, one.between, one.within)),
            ]
        )
    return Table(
        id="sequences-spread",
        title="How much depends on the sequence",
        caption=(
            "Value upon convergence, |A| = 20: the mean over seeds for the library's own sequence, and the least, "
            "median and greatest over all. Between: the standard deviation between sequences, without what seeds add "
            "to it. Seeds: that between the seeds of one sequence."
        ),
        columns=["Agent", "Delay", "Paper", "Own", "Least", "Median", "Most", "Between", "Seeds"],
        rows=rows,
    )


def _fit_table(curves: Curves) -> Table:
    rows: list[Row] = []
    for fit in fits(curves):
        within = sum(close(float(curves.returns(fit.written, one).mean()), one.value, 0.05) for one in RETURNS)
        counts = sum(close(curves.episodes(fit.written, one), one.value, 0.25) for one in EPISODES)
        own = ", the library's own" if fit.written == "".join(map(str, ALPHA)) else ""
        rows.append(
            [
                f"{fit.written}{own}",
                *(Cell(value=100 * error, digits=1) for error in (fit.chosen_by, fit.judged_by)),
                *(Cell(value=float(number), digits=0) for number in (within, counts)),
            ]
        )
    return Table(
        id="sequences-fit",
        title="Which sequence fits the published numbers",
        caption=(
            f"Mean distance from the {len(RETURNS)} published returns of Tables 2 and 4 with |A| = 20, in per cent of "
            "them, on the first half of the seeds, by which the rows are sorted, and on the other half; returns within "
            f"5 % of the published ones, of {len(RETURNS)}; counts of episodes within 25 % of those of Table 3, of "
            f"{len(EPISODES)}."
        ),
        columns=["Sequence", "Off by, first seeds", "Off by, other seeds", "Returns within 5 %", "Counts within 25 %"],
        rows=rows,
    )


def findings(played: Played[PaperSize]) -> list[str]:
    """Return the range over sequences, and what the best fit of them comes to."""
    curves = Curves(played)
    found = {agent: one.means for (agent, delay), one in spreads(curves).items() if delay == "poisson"}
    ranges = ", ".join(
        f"{NAMES.get(agent, name_of(agent))} {means.min():.1f} to {means.max():.1f}" for agent, means in found.items()
    )
    above = int((found["ucbvi"] > found["psvi-0.1"]).sum())
    best, *_ = order = fits(curves)
    own = next(one for one in order if one.written == "".join(map(str, ALPHA)))
    return [
        f"The unpublished sequence α, {len(order)} with the published optimum, printed settings, Poisson delays: "
        f"{ranges}; UCBVI ends above PSVI for {above} of them. The best fit is off by {100 * best.judged_by:.0f} % on "
        f"seeds that did not choose it, the library's own by {100 * own.judged_by:.0f} %."
    ]


ARTEFACT = Artefact(id="sequences", order=11, experiments=experiments, section=section, findings=findings, extra=True)

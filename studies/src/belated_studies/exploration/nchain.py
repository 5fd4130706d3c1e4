"""The N-chain: 10⁵ steps, without delay and under Poisson delays with mean 50."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from belated.delays import Poisson
from belated.environments import NChain
from belated_studies.exploration.problems import AUTO, NONE, Bar, Problem, Size, searched
from belated_studies.exploration.published import BEFORE, N_CHAIN, SIZES, THEIR_AGENTS, best_on_the_chain
from belated_studies.exploration.rows import Line
from belated_studies.exploration.section import artefact
from belated_studies.reports.document import Cell, Chart, Row, Table
from belated_studies.study import Played

STEPS, OPTIMUM = 100_000, 10.0
SOURCE = "the return: the best published; the regret: the earlier rule of AutoPSVI"
BARS = dict(zip(SIZES, (10.0, 9.85, 9.80, 9.80), strict=True))


@cache
def problems() -> tuple[Problem, ...]:
    """Return the chains; a chain of N has N + 8 steps an episode."""
    return tuple(
        Problem(
            name=f"N-chain {size}",
            label=f"nchain-{size}",
            make=partial(NChain, size),
            episodes=STEPS // (size + 8),
            delays={**NONE, "poisson-50": Poisson(50)},
            bars={
                "none": Bar(value=bar, within=59, before=BEFORE[f"nchain-{size}", "none"], source=SOURCE),
                "poisson-50": Bar(value=9.8, before=BEFORE[f"nchain-{size}", "poisson-50"], source=SOURCE),
            },
            target=OPTIMUM,
            window=1,
            published=best_on_the_chain(size),
            small=size == SIZES[0],
            **searched("nchain", without=["phe"]),
        )
        for size, bar in BARS.items()
    )


def published(played: Played[Size], found: Sequence[Line]) -> tuple[list[Table], list[Chart]]:
    """Return all published numbers below ours."""
    ours = {line.environment: line for line in found if (line.agent, line.delay) == (AUTO, "none")}
    first: list[str | Cell] = ["AutoPSVI, measured here"]
    for size in SIZES:
        line = ours.get(f"nchain-{size}")
        first.append(Cell(value=None, note="not played") if line is None else Cell(value=line.value))
    theirs: list[Row] = [
        [f"{agent}, published", *(Cell(value=None, published=number, note=f"{number:g}") for number in row)]
        for agent, row in N_CHAIN.items()
    ]
    ours_and_theirs = "the published numbers are means of 20 runs, ours is the mean of the last fifth"
    caption = f"Return after 10⁵ steps, no delay; {ours_and_theirs}. {THEIR_AGENTS}"
    columns = ["Agent", *(str(size) for size in SIZES)]
    table = Table(id="nchain-published", title="Published", caption=caption, columns=columns, rows=[first, *theirs])
    return [table], []


ARTEFACT = artefact(
    "nchain",
    1,
    "N-chain",
    [
        "A corridor with a small reward at its start and a large one at its far end. An agent that always goes right "
        "earns 10; one step back in the wrong place loses all of it. LSVI-PHE is left out because each of its draws "
        "solves a linear system."
    ],
    problems,
    more=published,
)

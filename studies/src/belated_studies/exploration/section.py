"""The section that every artefact of the study of exploration has: bars, numbers, curves of returns, and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from belated.runner import Results
from belated.types import Floats
from belated_studies import cells_and_curves
from belated_studies.cells_and_curves import band_series, regret_cell
from belated_studies.exploration.peers import DQN, PPO, SEEDS, Game, measurements, returns_of, runs_of
from belated_studies.exploration.problems import AUTO, DELAY_NAMES, PSRL, Q_LEARNING, Problem, Size, chosen
from belated_studies.exploration.rows import (
    REACHED,
    TOO_FEW,
    Judged,
    Line,
    judge,
    line_of,
    lines,
    mean_regret,
    optimum,
    timing,
)
from belated_studies.reports.document import Cell, Chart, Row, Section, Series, Table
from belated_studies.study import Artefact, Played

NAMES = {
    **cells_and_curves.NAMES,
    AUTO: "AutoPSVI",
    PSRL: "Delayed-PSRL",
    Q_LEARNING: "Q-learning",
    DQN: "DQN",
    PPO: "PPO",
    "epsilon-greedy": "ε-greedy",
    "active": "tabular UCBVI",
}
POINTS = 60
"""Of a curve of returns; each is the mean of as many episodes."""


def artefact(
    name: str,
    order: int,
    title: str,
    paragraphs: Sequence[str],
    problems: Callable[[], Sequence[Problem]],
    *,
    regret: bool = False,
    more: Callable[[Played[Size], Sequence[Line]], tuple[Sequence[Table], Sequence[Chart]]] = lambda *_: ((), ()),
    curves: bool = True,
    games: Mapping[str, Game] | None = None,
) -> Artefact[Size]:
    """Return the artefact of some `problems`, with or without `regret` and `curves`, and what `more` adds to it.

    Peers play those of the problems that are `games` of plain Gymnasium, too.
    """
    times = f"{name}-times"

    def section(played: Played[Size]) -> Section:
        found = lines(played, problems(), times)
        tables, charts = more(played, found)
        drawn = (
            [chart for each in chosen(problems(), played.size) for chart in return_charts(played, each)]
            if curves
            else []
        )
        shown = [
            bars_table(name, title, judge(played, problems(), found)),
            *losses_table(name, losses(played, problems(), found)),
            numbers_table(name, played, problems(), found, regret),
        ]
        return Section(id=name, title=title, paragraphs=paragraphs, tables=[*shown, *tables], charts=[*charts, *drawn])

    def findings(played: Played[Size]) -> list[str]:
        found = lines(played, problems(), times)
        return [
            told(title, judge(played, problems(), found)),
            *told_losses(title, losses(played, problems(), found)),
            *paces(title, problems(), found),
        ]

    def line(results: Results, pick: Mapping[str, str]) -> Line:
        (problem,) = [each for each in problems() if each.label == pick["environment"]]
        return line_of(results, problem, pick["delay"], pick["agent"])

    def cell(experiment: str, results: Results, pick: Mapping[str, str]) -> Cell:
        found = line(results, pick)
        return Cell(value=found.value, low=found.low, high=found.high)

    return Artefact(
        id=name,
        order=order,
        section=section,
        experiments=lambda size: [each.experiment(size) for each in chosen(problems(), size)],
        measurements=[timing(times, problems), *measurements(games or {}, problems)],
        findings=findings,
        lines=lambda played: [each._asdict() for each in lines(played, problems(), times)],
        cell=cell,
        line=lambda results, pick: line(results, pick)._asdict(),
    )


def called(problem: Problem, agent: str, source: str = "") -> str:
    """Return the name of an agent, and where its settings come from: of a peer, its `source`."""
    name = NAMES.get(agent, agent)
    if source:
        return f"{name} ({source})"
    if agent == AUTO:
        return f"{name} (nothing to set)"
    if agent in (PSRL, Q_LEARNING):
        return f"{name} (defaults, not searched for)"
    if agent not in problem.tuned:
        return f"{name} (not searched for)"
    elsewhere = problem.borrowed.get(agent)
    return f"{name} (tuned)" if elsewhere is None else f"{name} (not searched for here: settings of {elsewhere})"


def bars_table(name: str, title: str, judged: Sequence[Judged]) -> Table:
    """Return each bar with what `AutoPSVI` did."""
    rows: list[Row] = [
        [one.problem.name, DELAY_NAMES.get(one.delay, one.delay), one.bar, one.measured, one.verdict] for one in judged
    ]
    return Table(
        id=f"{name}-bars",
        title=f"{title}: what AutoPSVI has to reach",
        caption="Returns are means over the last fifth of the episodes; solved means by every seed. All from the rows.",
        columns=["Problem", "Delay", "Bar", "AutoPSVI", "Verdict"],
        rows=rows,
        prominent=True,
    )


def numbers_table(
    name: str, played: Played[Size], problems: Sequence[Problem], found: Sequence[Line], regret: bool
) -> Table:
    by_label = {problem.label: problem for problem in problems}
    rows: list[Row] = []
    for line in found:
        problem = by_label[line.environment]
        theirs = runs_of(played, problem, line.delay).get(line.agent)
        total = [_regret_cell(played.results[problem.label], line)] if regret else []
        shown = _row(problem, line, theirs[0].source if theirs else "")
        rows.append([*shown, *total, problem.published if line.agent == AUTO else "–"])
    rows += [row for problem in chosen(problems, played.size) for row in _not_played(played, problem)]
    columns = ["Problem", "Delay", "Agent", "Episodes", "Return, last fifth", "Optimum", "Solved at", "ms per episode"]
    return Table(
        id=f"{name}-table",
        title="Every agent",
        caption=(
            f"{_seeds(found)}, 95 % intervals. Solved at: the first episode by which the slowest seed had "
            "the return that counts as solved, as a mean over 100 episodes (N-chain: the first optimal one). Time: of "
            "one core, a whole run with seed 0, the least of a few if it is short. Published: without delay, by others."
        ),
        columns=[*columns, *(["Regret"] if regret else []), "Published"],
        rows=rows,
    )


def _seeds(found: Sequence[Line]) -> str:
    """Return how many seeds our agents had, and their peers if those had fewer."""
    ours = {line.seeds for line in found if line.agent not in (DQN, PPO)}
    theirs = {line.seeds for line in found if line.agent in (DQN, PPO)} - ours
    said = f"{max(ours, default=0)} seeds"
    return f"{said} (DQN and PPO: {min(theirs)})" if theirs else said


def _not_played(played: Played[Size], problem: Problem) -> list[Row]:
    """Return a row for each peer that failed, with the reason."""
    return [
        [
            problem.name,
            DELAY_NAMES.get(delay, delay),
            called(problem, agent, runs[-1].source),
            "–",
            Cell(value=None, note=f"not played: {run.failed}"),
            *(["–"] * 4),
        ]
        for delay in problem.delays
        for agent, runs in runs_of(played, problem, delay).items()
        for run in runs
        if run.failed
    ]


def _row(problem: Problem, line: Line, source: str) -> list[str | Cell]:
    milliseconds = line.milliseconds_per_episode
    return [
        problem.name,
        DELAY_NAMES.get(line.delay, line.delay),
        called(problem, line.agent, source),
        f"{line.episodes:,}",
        Cell(value=line.value, low=line.low, high=line.high),
        Cell(value=line.optimum, note="" if line.optimum is not None else "unknown"),
        Cell(value=line.solved_at, digits=0, note="" if line.solved_at is not None else "–"),
        Cell(value=milliseconds, digits=2),
    ]


def _regret_cell(results: Results, line: Line) -> Cell:
    return regret_cell(results, agent=line.agent, delay=line.delay)


def blocks(returns: Floats, points: int = POINTS) -> tuple[Floats, Floats]:
    """Return `returns` (seeds, episodes) averaged over blocks of episodes, and the last episode of each block.

    >>> last, means = blocks(np.array([[0.0, 2.0, 4.0, 6.0, 9.0]]), points=2)
    >>> last.tolist(), means.tolist()
    ([2.0, 5.0], [[1.0, 6.333333333333333]])
    """
    ends = np.unique(np.linspace(0, returns.shape[1], points + 1).astype(np.int64))
    parts = [returns[:, low:high].mean(axis=1) for low, high in pairwise(ends)]
    return ends[1:].astype(np.float64), np.stack(parts, axis=1)


def chart_id(problem: Problem, delay: str) -> str:
    """Return the id of a curve of returns, which is also the name of its file."""
    return f"{problem.label}-{delay}".replace(".", "-")


def return_charts(played: Played[Size], problem: Problem) -> list[Chart]:
    results, charts = played.results[problem.label], []
    for delay in problem.delays:
        series: list[Series] = []
        for agent in (AUTO, *problem.others):
            episodes, means = blocks(results.returns(agent=agent, delay=delay))
            series.append(band_series(NAMES.get(agent, agent), episodes, means))
        for agent, runs in runs_of(played, problem, delay).items():
            if (returns := returns_of(runs)).size:
                series.append(band_series(NAMES[agent], *blocks(returns), dashed=True))
        best = optimum(results, problem, delay, AUTO)
        late = DELAY_NAMES.get(delay, delay)
        charts.append(
            Chart(
                id=chart_id(problem, delay),
                title=f"{problem.name}, delay: {late}",
                caption=(
                    f"Return, mean over blocks of episodes and 95 % band over {played.size.seeds} seeds"
                    f"{f'; dashed: peers, {SEEDS} seeds' if any(one.dashed for one in series) else ''}."
                ),
                x_label="episode",
                y_label="return",
                series=series,
                level=None if best is None else ("optimum", best),
            )
        )
    return charts


def told(title: str, judged: Sequence[Judged]) -> str:
    """Return how many bars `AutoPSVI` reaches, and which it does not."""
    able = [one for one in judged if one.verdict != TOO_FEW]
    if not able:
        return f"{title}: not enough episodes to judge."
    missed = [
        f"{one.problem.name}, {DELAY_NAMES.get(one.delay, one.delay)} ({one.bar}; {one.measured})"
        for one in able
        if one.verdict != REACHED
    ]
    said = f"{title}: AutoPSVI reaches {len(able) - len(missed)} of {len(able)} bars"
    return f"{said}; not reached: {'; '.join(missed)}." if missed else f"{said}."


class Loss(NamedTuple):
    """Where another agent is better than `AutoPSVI`, and in what."""

    problem: Problem
    delay: str
    agent: str
    number: str
    """Return or regret."""
    theirs: float
    ours: float


def losses(played: Played[Size], problems: Sequence[Problem], found: Sequence[Line]) -> list[Loss]:
    """Return where another agent ends with a larger return than `AutoPSVI`, beyond its interval, or has less regret."""
    lost = []
    for problem in chosen(problems, played.size):
        for delay in problem.delays:
            here = {line.agent: line for line in found if (line.environment, line.delay) == (problem.label, delay)}
            ours = here.pop(AUTO)
            lost += [
                Loss(problem, delay, agent, "return", line.value, ours.value)
                for agent, line in here.items()
                if line.low > ours.value and line.value > ours.high
            ]
            if any(bar.regret is not None for bar in problem.bars.values()):
                lost += _less_regret(played.results[problem.label], problem, delay)
    return lost


def _less_regret(results: Results, problem: Problem, delay: str) -> list[Loss]:
    ours = mean_regret(results, AUTO, delay)
    theirs = {agent: mean_regret(results, agent, delay) for agent in problem.others}
    return [Loss(problem, delay, agent, "regret", regret, ours) for agent, regret in theirs.items() if regret < ours]


def losses_table(name: str, lost: Sequence[Loss]) -> list[Table]:
    """Return the table of what `AutoPSVI` loses, if there is anything."""
    rows: list[Row] = [
        [
            one.problem.name,
            DELAY_NAMES.get(one.delay, one.delay),
            NAMES.get(one.agent, one.agent),
            one.number,
            f"{one.theirs:,.4g}",
            f"{one.ours:,.4g}",
        ]
        for one in lost
    ]
    if not rows:
        return []
    return [
        Table(
            id=f"{name}-losses",
            title="Where another agent is better than AutoPSVI",
            caption="A larger return of the last fifth, beyond both intervals; or less regret, where that is counted.",
            columns=["Problem", "Delay", "Agent", "Number", "Theirs", "AutoPSVI"],
            rows=rows,
        )
    ]


def told_losses(title: str, lost: Sequence[Loss]) -> list[str]:
    """Return how often another agent is better, and which."""
    if not lost:
        return []
    agents = Counter(NAMES.get(one.agent, one.agent) for one in lost)
    said = ", ".join(f"{name} ({count})" for name, count in agents.most_common())
    return [f"{title}, numbers in which another agent is better than AutoPSVI: {said}."]


def paces(title: str, problems: Sequence[Problem], found: Sequence[Line]) -> list[str]:
    """Return how long `AutoPSVI` takes for an episode, as a multiple of what DQN and Delayed-PSVI take."""
    taken = {(line.environment, line.delay, line.agent): line.milliseconds_per_episode for line in found}

    def beside(*agents: str) -> list[tuple[float, str]]:
        """Return how many times as long it takes as one of `agents`, and where."""
        times = []
        for problem in problems:
            for delay in problem.delays:
                ours = taken.get((problem.label, delay, AUTO))
                theirs = next((each for agent in agents if (each := taken.get((problem.label, delay, agent)))), None)
                if ours and theirs:
                    times.append((ours / theirs, f"{problem.name}, {DELAY_NAMES.get(delay, delay)}"))
        return times

    said = []
    for name, times in (("DQN", beside(DQN)), ("Delayed-PSVI", beside("psvi", "psvi-0.1"))):
        if times:
            ends = dict.fromkeys([min(times), max(times)])
            said.append(f"{' to '.join(f'{each:.2g} ({where})' for each, where in ends)} times that of {name}")
    return [f"{title}, time of an episode of AutoPSVI: {'; '.join(said)}."] if said else []

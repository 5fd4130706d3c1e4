"""The section that every artefact of the study of exploration has: bars, numbers, curves of returns, and findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from belated.runner import Results
from belated.types import Floats
from belated_studies import cells_and_curves
from belated_studies.cells_and_curves import band_series, regret_cell, regret_series
from belated_studies.exploration.peers import DQN, PPO, Game, measurements, returns_of, runs_of
from belated_studies.exploration.problems import AUTO, DELAY_NAMES, LEARNED, PSRL, Q_LEARNING, Problem, Size, chosen
from belated_studies.exploration.rows import (
    OPEN,
    REACHED,
    TOO_FEW,
    Judged,
    Line,
    judge,
    line_of,
    lines,
    lost,
    mean_regret,
    optimum,
    timing,
    walking,
)
from belated_studies.exploration.searches import WHERE
from belated_studies.reports.document import Cell, Chart, Row, Section, Series, Table
from belated_studies.study import Artefact, Played
from belated_studies.winners import search_rows

NAMES = {
    **cells_and_curves.NAMES,
    AUTO: "AutoPSVI",
    LEARNED: "AutoPSVI, learned features",
    PSRL: "Delayed-PSRL",
    Q_LEARNING: "Q-learning",
    DQN: "DQN",
    PPO: "PPO",
    "epsilon-greedy": "ε-greedy",
    "active": "tabular UCBVI",
}
_PEERS = (DQN, PPO)
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
        found, draw = lines(played, problems(), times), regret_charts if regret else return_charts
        tables, charts = more(played, found)
        drawn = [chart for each in chosen(problems(), played.size) for chart in draw(played, each)] if curves else []
        shown = [
            bars_table(name, title, judge(played, problems(), found)),
            *losses_table(name, losses(played, problems(), found)),
            numbers_table(name, played, problems(), found, regret),
            *searches_table(name, chosen(problems(), played.size)),
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
        experiments=lambda size: [one for each in chosen(problems(), size) for one in each.experiments(size)],
        measurements=[
            timing(times, problems),
            walking(f"{name}-steps", problems),
            *measurements(games or {}, problems),
        ],
        findings=findings,
        lines=lambda played: [each._asdict() for each in lines(played, problems(), times)],
        cell=cell,
        line=lambda results, pick: line(results, pick)._asdict(),
    )


def name_of(agent: str, search: str = "") -> str:
    """Return the name of an agent, which may have been called after its `search`, too."""
    return NAMES.get(agent) or NAMES.get(agent.removesuffix(f"-{search}"), agent)


def called(problem: Problem, agent: str, source: str = "") -> str:
    """Return the name of an agent, and where its settings come from: of a peer, its `source`."""
    name = name_of(agent, problem.searches.get(agent, ""))
    if source:
        return f"{name} ({source})"
    if agent in (AUTO, LEARNED):
        return f"{name} (nothing to set)"
    search = problem.searches.get(agent)
    return f"{name} (defaults, not searched for)" if search is None else f"{name} (searched: {search})"


def bars_table(name: str, title: str, judged: Sequence[Judged]) -> Table:
    """Return each bar with what `AutoPSVI` did."""
    rows: list[Row] = [
        [one.problem.name, DELAY_NAMES.get(one.delay, one.delay), one.bar, one.measured, one.verdict, one.source]
        for one in judged
    ]
    return Table(
        id=f"{name}-bars",
        title=f"{title}: bars for AutoPSVI",
        caption=(
            "Returns are means over the last fifth of the episodes. A problem counts as solved if every seed has "
            "solved it. Every number is computed from the recorded rows."
        ),
        columns=["Problem", "Delay", "Bar", "AutoPSVI", "Verdict", "Where the bar comes from"],
        rows=rows,
        prominent=True,
    )


def numbers_table(
    name: str, played: Played[Size], problems: Sequence[Problem], found: Sequence[Line], regret: bool
) -> Table:
    by_label = {problem.label: problem for problem in problems}
    more: dict[str, Callable[[Problem, Line], str | Cell]] = {
        **({"Regret": partial(_regret_cell, played)} if regret else {}),
        **({"Lost": partial(_lost_cell, played)} if any(_may_be_lost(each) for each in problems) else {}),
        **({"Steps to the goal": _steps_cell} if any(line.steps is not None for line in found) else {}),
        **({"Published": _published} if any(problem.published for problem in problems) else {}),
    }
    rows: list[Row] = []
    for line in found:
        problem = by_label[line.environment]
        theirs = runs_of(played, problem, line.delay).get(line.agent)
        shown = _row(problem, line, theirs[0].source if theirs else "")
        rows.append([*shown, *(cell(problem, line) for cell in more.values())])
    rows += [
        [*row, *["–"] * len(more)] for problem in chosen(problems, played.size) for row in _not_played(played, problem)
    ]
    columns = ["Problem", "Delay", "Agent", "Episodes", "Return, last fifth", "Optimum", "Solved at", "ms per episode"]
    return Table(
        id=f"{name}-table",
        title="Every agent",
        caption=(
            f"{_seeds(found)}, 95 % intervals. Solved at: the episode by which the last seed had solved the "
            "problem, with a mean over 100 episodes (N-chain: with its first optimal episode). Time: CPU time of a "
            "whole run with seed 0 on one core; for short runs, the minimum of a few."
            f"{' Published: results of other authors, without delay.' if 'Published' in more else ''}"
        ),
        columns=[*columns, *more],
        rows=rows,
    )


def _regret_cell(played: Played[Size], problem: Problem, line: Line) -> str | Cell:
    if line.agent in _PEERS:
        return "–"
    return regret_cell(played.results[problem.experiment_of(line.agent)], agent=line.agent, delay=line.delay)


def _may_be_lost(problem: Problem) -> bool:
    return any(bar.lost is not None for bar in problem.bars.values())


def _lost_cell(played: Played[Size], problem: Problem, line: Line) -> str | Cell:
    if not _may_be_lost(problem):
        return "–"
    return f"{100 * lost(played.results[problem.label], line.delay, line.agent):.2g} %"


def _steps_cell(problem: Problem, line: Line) -> str | Cell:
    return "–" if line.steps is None else Cell(value=line.steps, digits=1)


def _published(problem: Problem, line: Line) -> str:
    return problem.published if line.agent == AUTO and problem.published else "–"


def searches_table(name: str, problems: Sequence[Problem]) -> list[Table]:
    """Return what was searched for every agent, on what and with which budget, if anything was."""
    used = dict.fromkeys((search, agent) for each in problems for agent, search in each.searches.items())
    rows: list[Row] = [_search_row(search, agent) for search, agent in used]
    if not rows:
        return []
    return [
        Table(
            id=f"{name}-searches",
            title="Searches",
            caption=(
                "The agents of one search have the same number of candidates and episodes, on seeds from 1000 on, "
                "which no report uses (`belated tune` and the name of the search). AutoPSVI has no settings."
            ),
            columns=["Search", "On", "Agent", "Searched", "Candidates", "Episodes played", "Found"],
            rows=rows,
        )
    ]


def _search_row(search: str, agent: str) -> Row:
    played = search_rows(search).filter(agent=agent.removesuffix(f"-{search}"))
    every = [json.loads(settings) for settings in played.filter(rung=0)["settings"]]
    found = json.loads(played.filter(pl.col("rung") == played["rung"].max(), "kept")["settings"].item())
    varied = [field for field in every[0] if len({str(each[field]) for each in every}) > 1]
    spent = int((played["episodes"] * played["seeds"]).sum())
    winner = ", ".join(f"{field} {found[field]}" for field in varied)
    return [search, WHERE[search], name_of(agent, search), ", ".join(varied), str(len(every)), f"{spent:,}", winner]


def _seeds(found: Sequence[Line]) -> str:
    """Return how many seeds our agents had, and their peers if those had others."""
    ours = sorted({line.seeds for line in found if line.agent not in _PEERS})
    theirs = sorted({line.seeds for line in found if line.agent in _PEERS} - set(ours))
    said = f"{' or '.join(map(str, ours)) or 0} seeds"
    return f"{said} (DQN and PPO: {' or '.join(map(str, theirs))})" if theirs else said


def _not_played(played: Played[Size], problem: Problem) -> list[Row]:
    """Return a row for each peer that failed, with the reason."""
    return [
        [
            problem.name,
            DELAY_NAMES.get(delay, delay),
            called(problem, agent, runs[-1].source),
            "–",
            Cell(value=None, note=f"not played: {run.failed}"),
            *(["–"] * 3),
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
        for agent in problem.agents:
            rows = played.results[problem.experiment_of(agent)]
            episodes, means = blocks(rows.returns(agent=agent, delay=delay))
            name = name_of(agent, problem.searches.get(agent, ""))
            series.append(band_series(name, episodes * problem.every, means))
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
                    f"Return, mean over blocks of episodes and 95 % band over {problem.seeds(played.size)} seeds"
                    f"{'; dashed: peers' if any(one.dashed for one in series) else ''}."
                ),
                x_label="episode",
                y_label="return",
                series=series,
                level=None if best is None else ("optimum", best),
            )
        )
    return charts


def regret_charts(played: Played[Size], problem: Problem) -> list[Chart]:
    """Return curves of cumulative regret, which noise in the rewards does not touch."""
    results = played.results[problem.label]
    return [
        Chart(
            id=chart_id(problem, delay),
            title=f"{problem.name}, delay: {DELAY_NAMES.get(delay, delay)}",
            caption=f"Cumulative regret, mean and 95 % band over {problem.seeds(played.size)} seeds.",
            x_label="episode",
            y_label="regret",
            series=[
                regret_series(results, agent, name_of(agent, problem.searches.get(agent, "")), delay=delay)
                for agent in problem.agents
            ],
        )
        for delay in problem.delays
    ]


def told(title: str, judged: Sequence[Judged]) -> str:
    """Return how many bars `AutoPSVI` reaches, and which it does not."""
    able = [one for one in judged if one.verdict not in (TOO_FEW, OPEN)]
    if not able:
        return f"{title}: no bar applies."
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
    ours = mean_regret(results, problem, AUTO, delay)
    theirs = {agent: mean_regret(results, problem, agent, delay) for agent in problem.others}
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
            caption=(
                "Better means a larger return over the last fifth of the episodes, each mean outside the other's "
                "interval; or less regret, where regret is the measure."
            ),
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
    return [f"{title}: AutoPSVI is not the best everywhere; how often another agent is better: {said}."]


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

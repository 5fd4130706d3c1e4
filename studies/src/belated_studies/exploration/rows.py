"""From rows to the numbers of the study: one `Line` for each environment, delay and agent, and what the bars say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import process_time
from typing import NamedTuple

import numpy as np

from belated.delays import Constant
from belated.evaluation import Estimate, mean_interval
from belated.runner import Results, Run, simulate
from belated.types import Floats
from belated_studies.cells_and_curves import final_regret
from belated_studies.exploration.peers import returns_of, runs_of
from belated_studies.exploration.problems import AUTO, Bar, Problem, Size, chosen
from belated_studies.study import Measurement, Played

REACHED, NOT_REACHED, TOO_FEW = "reached", "not reached", "not enough episodes"


class Line(NamedTuple):
    """What is known of one agent in one environment under one delay."""

    environment: str
    delay: str
    agent: str
    seeds: int
    episodes: int
    value: float
    """The mean return of the last fifth of the episodes."""
    low: float
    high: float
    optimum: float | None
    solved_at: int | None
    """The episode at which the slowest seed had solved it; None if one never did."""
    milliseconds_per_episode: float | None


class Timed(NamedTuple):
    """Milliseconds of processor time per episode, over a whole run with seed 0; the least of a few if it is short."""

    environment: str
    delay: str
    agent: str
    milliseconds: float


def timing(name: str, problems: Callable[[], Sequence[Problem]]) -> Measurement[Size]:
    """Return the measurement that times every agent on `problems`."""
    return Measurement(name=name, kind=Timed, measure=lambda size: _times(chosen(problems(), size), size))


def _times(problems: Sequence[Problem], size: Size) -> Iterator[Timed]:
    for problem in problems:
        for run in problem.experiment(size).runs():
            if run.seed != 0:
                continue
            for distribution in (run.delay, Constant(0)):  # compiles, where there is need to, also what learns
                simulate(run.environment, run.algorithm, distribution, episodes=3, seed=0)
            passed = least(partial(_seconds, run))
            yield Timed(run.environment_label, run.delay_label, run.agent_label, 1000 * passed / run.episodes)


def _seconds(run: Run) -> float:
    began = process_time()
    simulate(run.environment, run.algorithm, run.delay, episodes=run.episodes, seed=0)
    return process_time() - began


def least(time: Callable[[], float], enough: float = 1.0, most: int = 10) -> float:
    """Return the least of a few times: as many as take `enough` seconds, at most `most`. Short ones vary much.

    >>> times = iter([3.0, 0.25, 0.5, 0.125])
    >>> least(lambda: next(times)), least(lambda: next(times), most=2)
    (3.0, 0.25)
    """
    taken = [time()]
    while sum(taken) < enough and len(taken) < most:
        taken.append(time())
    return min(taken)


def solved_at(returns: Floats, target: float, window: int) -> int | None:
    """Return the episode, from 1, by which every seed had a mean of `target` over `window` episodes, None if never.

    >>> solved_at(np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]]), 0.9, 2)
    4
    >>> solved_at(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), 0.9, 2) is None
    True
    """
    if returns.shape[1] < window:
        return None
    sums = np.cumsum(np.pad(returns, ((0, 0), (1, 0))), axis=1)
    # running sums lose a few digits, which must not turn an optimum into something less
    good = (sums[:, window:] - sums[:, :-window]) / window >= target - 1e-9 * max(1.0, float(np.abs(sums).max()))
    return int(good.argmax(axis=1).max()) + window if good.any(axis=1).all() else None


def last_fifth(returns: Floats) -> Estimate:
    """Return the mean return of the last fifth of the episodes, with its interval over seeds.

    >>> last_fifth(np.array([[0.0, 0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0, 0.0, 7.0]])).value
    6.0
    """
    return mean_interval(returns[:, -max(1, returns.shape[1] // 5) :].mean(axis=1))


def lines(played: Played[Size], problems: Sequence[Problem], times: str) -> list[Line]:
    """Return all lines of `problems`, in the order of the report: our agents, and then their peers."""
    timed = {one[:3]: one.milliseconds for one in played.measured.get(times, ())}
    found = []
    for problem in chosen(problems, played.size):
        results = played.results[problem.label]
        for delay in problem.delays:
            found += [
                line_of(results, problem, delay, agent, timed.get((problem.label, delay, agent)))
                for agent in (AUTO, *problem.others)
            ]
            for agent, runs in runs_of(played, problem, delay).items():
                good = [run for run in runs if not run.failed]
                if good:  # the time is that of the first seed, as ours is
                    best = optimum(results, problem, delay, AUTO)
                    found.append(_line(problem, delay, agent, returns_of(good), best, good[0].milliseconds))
    return found


def line_of(results: Results, problem: Problem, delay: str, agent: str, milliseconds: float | None = None) -> Line:
    """Return the line of one of our agents."""
    returns, best = results.returns(agent=agent, delay=delay), optimum(results, problem, delay, agent)
    return _line(problem, delay, agent, returns, best, milliseconds)


def optimum(results: Results, problem: Problem, delay: str, agent: str) -> float | None:
    """Return the best return: that in the rows of `agent`, else the problem's, else that of its table if it has one."""
    optimal = results.array("optimal", agent=agent, delay=delay).astype(np.float64)  # null becomes nan
    if not np.isnan(optimal).any():
        return float(optimal.mean())
    return problem.world.optimal_value if problem.optimum is None else problem.optimum


def _line(
    problem: Problem, delay: str, agent: str, returns: Floats, best: float | None, milliseconds: float | None
) -> Line:
    found = last_fifth(returns)
    return Line(
        environment=problem.label,
        delay=delay,
        agent=agent,
        seeds=returns.shape[0],
        episodes=returns.shape[1],
        value=found.value,
        low=found.low,
        high=found.high,
        optimum=best,
        solved_at=None if problem.target is None else solved_at(returns, problem.target, problem.window),
        milliseconds_per_episode=milliseconds,
    )


class Judged(NamedTuple):
    """A bar, what was measured against it, and whether it was reached."""

    problem: Problem
    delay: str
    bar: str
    measured: str
    verdict: str


def judge(played: Played[Size], problems: Sequence[Problem], found: Sequence[Line]) -> list[Judged]:
    """Return what the bars of `problems` say of `AutoPSVI`."""
    auto = {(line.environment, line.delay): line for line in found if line.agent == AUTO}
    judged = []
    for problem in chosen(problems, played.size):
        for delay, bar in problem.bars.items():
            parts = _parts(played.results[problem.label], problem, delay, bar, auto[problem.label, delay])
            reached = REACHED if all(good for _, _, good in parts) else NOT_REACHED
            verdict = reached if problem.shortened(played.size) == problem.episodes else TOO_FEW
            said, measured = "; ".join(part[0] for part in parts), "; ".join(part[1] for part in parts)
            judged.append(Judged(problem, delay, said, measured, verdict))
    return judged


def _parts(results: Results, problem: Problem, delay: str, bar: Bar, line: Line) -> list[tuple[str, str, bool]]:
    """Return each part of a bar, what was measured, and whether it is good enough."""
    return [
        *([] if bar.value is None else [_value(bar.value, line)]),
        *([] if bar.within is None else [_within(bar.within, line)]),
        *([] if bar.regret is None else [_regret(results, problem, delay, bar.regret)]),
    ]


def _value(least: float, line: Line) -> tuple[str, str, bool]:
    # the mean of equal returns may lose the last digit
    return f"at least {least:.4g}", f"{line.value:.4g}", line.value >= least - 1e-9 * abs(least)


def _within(most: int, line: Line) -> tuple[str, str, bool]:
    told = "not by every seed" if line.solved_at is None else f"by episode {line.solved_at:,}"
    return f"solved by episode {most:,}", told, line.solved_at is not None and line.solved_at <= most


def _regret(results: Results, problem: Problem, delay: str, factor: float) -> tuple[str, str, bool]:
    regret = {agent: mean_regret(results, agent, delay) for agent in (AUTO, *problem.tuned)}
    ours = regret.pop(AUTO)
    best = min(regret, key=regret.__getitem__)
    times = "" if factor == 1 else f"{factor:g} × "
    said = f"regret at most {times}{regret[best]:,.0f} ({best})"
    return said, f"{ours:,.0f}", ours <= factor * regret[best]


def mean_regret(results: Results, agent: str, delay: str) -> float:
    """Return the mean over seeds of cumulative regret at the end."""
    return float(final_regret(results, agent=agent, delay=delay).mean())

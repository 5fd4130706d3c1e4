"""From rows to the numbers of the study: one `Line` per environment, delay and agent, and the verdicts on the bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from belated.delays import Constant
from belated.environments import GymEnvironment
from belated.evaluation import Estimate, mean_interval
from belated.runner import Results, Run, simulate
from belated.types import Floats, Step
from belated_studies.cells_and_curves import final_regret
from belated_studies.exploration.peers import DQN, returns_of, runs_of
from belated_studies.exploration.problems import AUTO, SLACK, Bar, Problem, Size, chosen
from belated_studies.study import Measurement, Played

REACHED, NOT_REACHED, TOO_FEW, OPEN = "reached", "not reached", "not enough episodes", "not judged"


class Line(NamedTuple):
    """The results of one agent in one environment under one delay."""

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
    steps: float | None = None
    """Mean steps to the goal, over the episodes of the last fifth that reach it, if counted."""


class Timed(NamedTuple):
    """CPU milliseconds per episode, over a whole run with seed 0; the minimum of a few if it is short."""

    environment: str
    delay: str
    agent: str
    milliseconds: float


def timing(name: str, problems: Callable[[], Sequence[Problem]]) -> Measurement[Size]:
    """Return the measurement that times every agent on `problems`."""
    return Measurement(name=name, kind=Timed, measure=lambda size: _times(chosen(problems(), size), size))


def _times(problems: Sequence[Problem], size: Size) -> Iterator[Timed]:
    for problem in problems:
        for experiment in problem.experiments(size):
            for run in experiment.runs():
                if run.seed != 0:
                    continue
                for distribution in (run.delay, Constant(0)):  # compile everything first, including learning
                    simulate(run.environment, run.algorithm, distribution, episodes=3, seed=0)
                passed = least(partial(_seconds, run))
                yield Timed(run.environment_label, run.delay_label, run.agent_label, 1000 * passed / run.episodes)


class Walked(NamedTuple):
    """The steps to the goal of one run, over the episodes of the last fifth that reach it; nan if none does."""

    environment: str
    delay: str
    agent: str
    seed: int
    steps: float


class Counting(GymEnvironment):
    """Counts the steps of each episode."""

    def reset(self, *given: Any, **named: Any) -> Any:
        self.lengths: list[int] = [*getattr(self, "lengths", []), 0]
        return super().reset(*given, **named)

    def step(self, action: int) -> Step:
        self.lengths[-1] += 1
        return super().step(action)


def walking(name: str, problems: Callable[[], Sequence[Problem]]) -> Measurement[Size]:
    """Return the measurement that counts the steps of `AutoPSVI` to the goal, in problems with a bar for them."""

    def measure(size: Size) -> Iterator[Walked]:
        for problem in chosen(problems(), size):
            if not any(bar.steps for bar in problem.bars.values()):
                continue
            for run in (each for each in problem.experiments(size)[0].runs() if each.agent_label == AUTO):
                assert isinstance(problem.make, partial)
                world = Counting(*problem.make.args, **problem.make.keywords)
                rows = simulate(world, run.algorithm, run.delay, episodes=run.episodes, seed=run.seed)
                last = -max(1, run.episodes // 5)
                goal = rows["sampled_return"].to_numpy()[last:] > 0
                steps = float(np.array(world.lengths)[last:][goal].mean()) if goal.any() else float("nan")
                yield Walked(run.environment_label, run.delay_label, run.agent_label, run.seed, steps)

    return Measurement(name=name, kind=Walked, measure=measure)


def _seconds(run: Run) -> float:
    began = process_time()
    simulate(run.environment, run.algorithm, run.delay, episodes=run.episodes, seed=0)
    return process_time() - began


def least(time: Callable[[], float], enough: float = 1.0, most: int = 10) -> float:
    """Return the minimum of several timings: as many as take `enough` seconds, at most `most`.

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
    # rounding of running sums must not make an optimum miss the target
    good = (sums[:, window:] - sums[:, :-window]) / window >= target - 1e-9 * max(1.0, float(np.abs(sums).max()))
    return int(good.argmax(axis=1).max()) + window if good.any(axis=1).all() else None


def last_fifth(returns: Floats) -> Estimate:
    """Return the mean return of the last fifth of the episodes, with its interval over seeds.

    >>> last_fifth(np.array([[0.0, 0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0, 0.0, 7.0]])).value
    6.0
    """
    return mean_interval(returns[:, -max(1, returns.shape[1] // 5) :].mean(axis=1))


def lines(played: Played[Size], problems: Sequence[Problem], times: str) -> list[Line]:
    """Return all lines of `problems`, in the order of the report: our agents, then the peers."""
    timed = {one[:3]: one.milliseconds for one in played.measured.get(times, ())}
    found = []
    for problem in chosen(problems, played.size):
        results = played.results[problem.label]
        for delay in problem.delays:
            for agent in problem.agents:
                line = line_of(played.results[problem.experiment_of(agent)], problem, delay, agent)
                taken, steps = timed.get((problem.label, delay, agent)), _steps(played, problem, delay, agent)
                found.append(line._replace(milliseconds_per_episode=taken, steps=steps))
            for agent, runs in runs_of(played, problem, delay).items():
                good = [run for run in runs if not run.failed]
                if good:  # the time of the first seed, as for ours
                    best = optimum(results, problem, delay, AUTO)
                    line = _line(problem, delay, agent, returns_of(good), len(good[0].returns), best)
                    found.append(line._replace(milliseconds_per_episode=good[0].milliseconds))
    return found


def _steps(played: Played[Size], problem: Problem, delay: str, agent: str) -> float | None:
    """Return the mean over seeds of the steps to the goal; None if not counted or never reached."""
    walked = [one for values in played.measured.values() for one in values if isinstance(one, Walked)]
    steps = [one.steps for one in walked if one[:3] == (problem.label, delay, agent) and not np.isnan(one.steps)]
    return float(np.mean(steps)) if steps else None


def line_of(results: Results, problem: Problem, delay: str, agent: str) -> Line:
    """Return the line of one of our agents, without its time."""
    returns, best = results.returns(agent=agent, delay=delay), optimum(results, problem, delay, agent)
    return _line(problem, delay, agent, returns, int(results.episodes[-1]), best)


def optimum(results: Results, problem: Problem, delay: str, agent: str) -> float | None:
    """Return the best return: that in the rows of `agent`, else the problem's, else that of its table if it has one."""
    optimal = results.array("optimal", agent=agent, delay=delay).astype(np.float64)  # null becomes nan
    if not np.isnan(optimal).any():
        return float(optimal.mean())
    return problem.world.optimal_value if problem.optimum is None else problem.optimum


def _line(problem: Problem, delay: str, agent: str, returns: Floats, episodes: int, best: float | None) -> Line:
    found = last_fifth(returns)
    return Line(
        environment=problem.label,
        delay=delay,
        agent=agent,
        seeds=returns.shape[0],
        episodes=episodes,
        value=found.value,
        low=found.low,
        high=found.high,
        optimum=best,
        solved_at=None if problem.target is None else solved_at(returns, problem.target, problem.window),
        milliseconds_per_episode=None,
    )


class Judged(NamedTuple):
    """A bar, what was measured against it, and whether it was reached."""

    problem: Problem
    delay: str
    bar: str
    measured: str
    verdict: str
    source: str


def judge(played: Played[Size], problems: Sequence[Problem], found: Sequence[Line]) -> list[Judged]:
    """Return the verdicts on the bars of `problems` for `AutoPSVI`."""
    by_agent = {(line.environment, line.delay, line.agent): line for line in found}
    judged = []
    for problem in chosen(problems, played.size):
        for delay, bar in problem.bars.items():
            here = {
                agent: line
                for (label, late, agent), line in by_agent.items()
                if (label, late) == (problem.label, delay)
            }
            parts = _parts(played.results[problem.label], problem, delay, bar, here)
            good = [each for _, _, each in parts]
            reached = OPEN if None in good else REACHED if all(good) else NOT_REACHED
            verdict = reached if problem.shortened(played.size) == problem.episodes else TOO_FEW
            said, measured = "; ".join(part[0] for part in parts), "; ".join(part[1] for part in parts)
            judged.append(Judged(problem, delay, said, measured, verdict, bar.source))
    return judged


Part = tuple[str, str, bool | None]
"""A part of a bar, the measured value, and whether it is met; None if unknown."""


def _parts(results: Results, problem: Problem, delay: str, bar: Bar, here: dict[str, Line]) -> list[Part]:
    """Return each part of a bar; `here` are the lines of its problem and delay, by agent."""
    line, dqn = here[AUTO], here.get(DQN)
    parts: list[Part | bool] = [
        bar.value is not None and _value(bar.value, line),
        bar.within is not None and _within(bar.within, line),
        bar.regret is not None and _regret(results, problem, delay, bar.regret),
        bar.before is not None and _before(results, problem, delay, bar.before),
        bar.steps is not None and _most("{} steps to the goal", bar.steps, line.steps, "{:.3g}"),
        bar.lost is not None and _lost(results, delay, bar.lost),
        bar.of_dqn is not None and _of_dqn(bar.of_dqn, line, dqn),
        bar.not_below_dqn and _not_below(line, dqn),
        bar.time_of_dqn
        and _most(
            "{} ms an episode, as DQN",
            None if dqn is None else dqn.milliseconds_per_episode,
            line.milliseconds_per_episode,
            "{:.3g} ms",
        ),
        bar.milliseconds is not None
        and _most("{} ms an episode", bar.milliseconds, line.milliseconds_per_episode, "{:.3g} ms"),
    ]
    return [part for part in parts if not isinstance(part, bool)]


def _value(least: float, line: Line) -> Part:
    # the mean of equal returns may lose the last digit
    return f"at least {least:.4g}", f"{line.value:.4g}", line.value >= least - 1e-9 * abs(least)


def _most(said: str, most: float | None, measured: float | None, written: str) -> Part:
    told = "not measured" if measured is None else written.format(measured)
    wanted = "the time of DQN, which was not played" if most is None else f"at most {said.format(f'{most:.3g}')}"
    return wanted, told, None if most is None or measured is None else measured <= most


def _within(most: int, line: Line) -> Part:
    told = "not by every seed" if line.solved_at is None else f"by episode {line.solved_at:,}"
    return f"solved by episode {most:,}", told, line.solved_at is not None and line.solved_at <= most


def _regret(results: Results, problem: Problem, delay: str, factor: float) -> Part:
    regret = {agent: mean_regret(results, problem, agent, delay) for agent in (AUTO, *problem.others)}
    ours = regret.pop(AUTO)
    best = min(regret, key=regret.__getitem__)
    times = "" if factor == 1 else f"{factor:g} × "
    said = f"regret at most {times}{regret[best]:,.0f} ({best})"
    return said, f"{ours:,.0f} ({ours / regret[best]:.2f} ×)", ours <= factor * regret[best]


def _before(results: Results, problem: Problem, delay: str, before: float) -> Part:
    ours = mean_regret(results, problem, AUTO, delay)
    said = f"regret at most {SLACK:g} × {before:,.0f}, that of the earlier rule"
    return said, f"{ours:,.0f} ({ours / before:.2f} ×)", ours <= SLACK * before


def _lost(results: Results, delay: str, most: float) -> Part:
    share = lost(results, delay, AUTO)
    return f"lost in at most {100 * most:g} % of the runs", f"{100 * share:.2g} %", share <= most


def lost(results: Results, delay: str, agent: str) -> float:
    """Return the fraction of seeds whose last fifth is closer to the worst policy seen than to the best."""
    value, optimal = (results.array(column, agent=agent, delay=delay) for column in ("value", "optimal"))
    short = (optimal - value)[:, -max(1, value.shape[1] // 5) :].mean(axis=1)
    return float((short > (optimal - value).max() / 2).mean())


def _of_dqn(part: float, line: Line, dqn: Line | None) -> Part:
    if dqn is None:
        return f"at least {100 * part:g} % of DQN's, which was not played", f"{line.value:.4g}", None
    told = f"{line.value:.4g} ({100 * line.value / dqn.value:.0f} %)"
    return f"at least {100 * part:g} % of DQN's {dqn.value:.4g}", told, line.value >= part * dqn.value


def _not_below(line: Line, dqn: Line | None) -> Part:
    told = f"{line.value:.4g} [{line.low:.4g}, {line.high:.4g}]"
    if dqn is None:
        return "not below DQN, which was not played", told, None
    return f"not below DQN, {dqn.value:.4g} [{dqn.low:.4g}, {dqn.high:.4g}]", told, line.high >= dqn.low


def mean_regret(results: Results, problem: Problem, agent: str, delay: str) -> float:
    """Return the mean over seeds of cumulative regret at the end: of returns, where values are not known."""
    exact = float(final_regret(results, agent=agent, delay=delay).mean())
    if not np.isnan(exact):
        return exact
    returns, best = results.returns(agent=agent, delay=delay), optimum(results, problem, delay, agent)
    return float("nan") if best is None else float((best - returns).sum(axis=1).mean())

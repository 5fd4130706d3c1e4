"""Fifty shows and their listeners: the scene of Impatient Bandits, where a reward comes in daily bits for two months.

The shows are those of the authors' published code (github.com/spotify-research/impatient-bandits, seed 42), of whose
10 000 listeners each the first 2 000 are played. Their agent has a prior that was fitted beforehand to 200 other shows,
with the covariance of all days; ours is played with that prior, and with none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.linalg

from belated._kernels.streams import stream
from belated.agents import LearnByAge
from belated.delays import Constant
from belated.environments.trials import Trial
from belated.evaluation import mean_interval
from belated.runner import Experiment, simulate
from belated.types import Floats, Ints
from belated_studies.cells_and_curves import cell, final_regret
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Measurement, Played
from belated_studies.trials.fitted import FittedByAge, Prior
from belated_studies.trials.settings import AGE, FIRST_SEED, MATURE, NAMES, Size

SHOWS, OTHERS, LISTENERS, PLAYED, DAYS, HORIZON = 50, 200, 10_000, 2_000, 59, 180
PER_DAY = (10, 50)
SEEDS = 20
FITTED = "by-age-fitted"
REPORTED = {10: (1.31, 1.81), 50: (0.78, None)}
"""Average regret at day 180 that is reported for their agent, and for one that waits, by decisions a day."""


@cache
def listened() -> tuple[Floats, Prior]:
    """Return on which days listeners of each show came back, shape (shows, listeners, days), and the others' prior."""
    rng, days = np.random.default_rng(42), np.arange(DAYS)
    root = np.linalg.cholesky(1.2 * np.exp(-np.abs(days[:, np.newaxis] - days) / 8.0))
    week = -np.abs(np.sin(np.pi * days / 7))
    found, means, within = [], [], np.zeros((DAYS, DAYS))
    for show in range(OTHERS + SHOWS):
        leaving, spread = _logistic(0.1 * rng.normal() - 0.4), rng.uniform(0.7, 1.5)
        rate = -0.5 + 0.1 * root @ rng.normal(size=DAYS)
        came = rng.binomial(1, _logistic(rate + rng.uniform(0.1, 1.0) * week), size=(LISTENERS, DAYS))
        stays = rng.geometric(rng.beta(spread * leaving, spread * (1.0 - leaving), size=LISTENERS)) - 1
        came = (came * (days < stays[:, np.newaxis])).astype(np.float64)
        if show < OTHERS:
            means.append(came.mean(axis=0))
            within += np.cov(came.T) / OTHERS
        else:
            found.append(came[:PLAYED])
    return np.array(found), Prior(np.mean(means, axis=0), np.cov(np.transpose(means)), within)


def _logistic(x: Floats | float) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(x))))


def fitted_prior() -> Prior:
    """Return mean and covariances of the other shows, as their helper fits them."""
    return listened()[1]


def trial(per_day: int) -> Trial:
    """Return the shows as arms; a listener reports every day on which they came back."""
    traces = listened()[0].reshape(SHOWS * PLAYED, DAYS)
    ages = np.sort(np.where(traces > 0, (np.arange(DAYS) + 1) / DAYS, np.inf), axis=1)
    ages = ages[:, : int(traces.sum(axis=1).max())]
    who = np.arange(SHOWS * PLAYED).reshape(1, SHOWS, PLAYED)
    chances = np.full(who.shape, 1.0 / PLAYED)
    return Trial(who, chances, ages, np.ones(ages.shape), rounds=DAYS * per_day, name=f"shows-{per_day}")


def experiments(size: Size) -> list[Experiment]:
    """Return ten and fifty decisions a day."""
    found = []
    for per_day in PER_DAY:
        world = trial(per_day)
        agents = {
            AGE: LearnByAge(window=world.window),
            FITTED: FittedByAge(per_day=per_day),
            MATURE: LearnByAge(window=world.window, ages=1),
        }
        found.append(
            Experiment(
                name=world.name,
                environments=world,
                agents=agents,
                delays=Constant(0),
                episodes=HORIZON * per_day,
                seeds=_seeds(size),
                record_every=HORIZON * per_day,
            )
        )
    return found


def _seeds(size: Size) -> range:
    return range(FIRST_SEED, FIRST_SEED + min(SEEDS, size.seeds))


class Progressive:
    """The belief about one show of Impatient Bandits: a transcription of `ProgressiveBelief`, with the fixed noise."""

    def __init__(self, prior: Prior) -> None:
        self.prior, self.days = prior, len(prior.mean)
        self.traces, self.began = np.zeros((0, self.days)), np.zeros(0, np.int64)
        self.mean, self.variance, self.today = float(prior.mean.sum()), float(prior.between.sum()), 0

    def update(self, trace: Floats, day: int) -> None:
        self.traces, self.began = np.vstack((self.traces, trace)), np.hstack((self.began, day))

    def sample(self, day: int, rng: np.random.Generator) -> float:
        if day != self.today:
            self._compute(day)
        return float(self.mean + np.sqrt(self.variance) * rng.standard_normal())

    def _compute(self, day: int) -> None:
        seen = np.tile(np.arange(self.days), (len(self.began), 1)) < (day - self.began)[:, None]
        known = np.zeros_like(self.traces)
        known[seen] = self.traces[seen]
        users = np.sum(seen, axis=0)
        k = int(np.min(np.argwhere(users == 0), initial=self.days))  # the first day that nobody has reached
        empirical = known[:, :k].sum(axis=0) / users[:k]
        noise = self.prior.within[:k, :k] / np.maximum(users[:k, None], users[None, :k])
        between = self.prior.between
        inverse = scipy.linalg.solve(between[:k, :k] + noise, np.eye(k), assume_a="pos") if k else np.zeros((0, 0))
        mean = self.prior.mean + between[:, :k] @ inverse @ (empirical - self.prior.mean[:k])
        covariance = between - between[:, :k] @ inverse @ between[:k, :]
        self.mean, self.variance, self.today = float(mean.sum()), max(float(covariance.sum()), 0.0), day


def progressive(per_day: int, seed: int) -> float:
    """Return the average regret of their agent at the end, on the listeners of `trial`."""
    traces, prior = listened()
    means = traces.sum(axis=2).mean(axis=1)
    beliefs, rng, listeners = (
        [Progressive(prior) for _ in range(SHOWS)],
        stream(seed, "agent"),
        stream(seed, "environment"),
    )
    chosen: list[Ints] = []
    for day in range(HORIZON):
        today = [int(np.argmax([belief.sample(day, rng) for belief in beliefs])) for _ in range(per_day)]
        for show in today:
            beliefs[show].update(traces[show, listeners.integers(PLAYED)], day)
        chosen.append(np.array(today))
    return float(np.mean(means.max() - means[np.concatenate(chosen)]))


class ShowRun(NamedTuple):
    """A run of their agent, and one of ours with its prior."""

    per_day: int
    seed: int
    regret: float
    seconds: float
    """Of CPU."""
    ours: float
    """Seconds of ours."""


def measured(size: Size) -> Iterator[ShowRun]:
    """Play their agent, and ours once more beside it for its time."""
    for per_day in PER_DAY:
        world = trial(per_day)
        simulate(world, FittedByAge(per_day=per_day), Constant(0), episodes=2, seed=0)  # compiled
        for seed in _seeds(size):
            began = time.process_time()
            regret = progressive(per_day, seed)
            between = time.process_time()
            simulate(world, FittedByAge(per_day=per_day), Constant(0), episodes=HORIZON * per_day, seed=seed)
            yield ShowRun(per_day, seed, regret, between - began, time.process_time() - between)


def averages(played: Played[Size], per_day: int) -> dict[str, Floats]:
    """Return the average regret of a decision of each run, by agent."""
    results = played.results[f"shows-{per_day}"]
    return {agent: final_regret(results, agent=agent) / (HORIZON * per_day) for agent in (FITTED, AGE, MATURE)}


def theirs(played: Played[Size], per_day: int) -> list[ShowRun]:
    return [run for run in played.measured["shows"] if run.per_day == per_day]


def section(played: Played[Size]) -> Section:
    """Return average regret beside that of their agent."""
    rows: list[Row] = []
    for per_day in PER_DAY:
        ours = [cell(mean_interval(values)) for values in averages(played, per_day).values()]
        runs = theirs(played, per_day)
        seconds = [Cell(value=float(np.median([getattr(run, name) for run in runs]))) for name in ("ours", "seconds")]
        reported = (Cell(value=value) for value in REPORTED[per_day])
        rows.append(
            [f"{per_day}", ours[0], cell(mean_interval([run.regret for run in runs])), *ours[1:], *reported, *seconds]
        )
    columns = [
        "Decisions a day",
        "by age, their prior",
        "theirs",
        f"{NAMES[AGE]}, no prior",
        f"{NAMES[MATURE]}, no prior",
    ]
    columns += ["theirs, reported", "theirs waiting, reported", "seconds, by age, their prior", "seconds, theirs"]
    caption = (
        f"Average regret per decision after {HORIZON} days, in days on which a listener comes back; {SHOWS} shows, "
        f"{len(theirs(played, PER_DAY[0]))} runs. Theirs is a transcription of their published agent, on the same "
        "listeners; the reported figures are from their own runs. The prior is the mean and the covariance of 200 "
        "other shows, day by day; without it, everything is learned from these shows alone. Learning by age with "
        "that prior draws half as wide as its posterior, which was chosen on shows that are not played here; theirs "
        "draws from the whole posterior. Seconds are CPU time of the median run."
    )
    table = Table(id="shows-table", title="Fifty shows", caption=caption, columns=columns, rows=rows)
    return Section(id="shows", title="Rewards that arrive day by day", tables=[table])


def findings(played: Played[Size]) -> list[str]:
    """Return the bars of this scene, met or missed."""
    told = []
    for per_day in PER_DAY:
        means, runs = averages(played, per_day), theirs(played, per_day)
        cpu = np.median([run.seconds for run in runs]) / np.median([run.ours for run in runs])
        told.append(
            f"{per_day} decisions a day {means[FITTED].mean():.2f} with the fitted prior (theirs "
            f"{np.mean([run.regret for run in runs]):.2f} here, {REPORTED[per_day][0]} reported; {cpu:.0f} times the "
            f"CPU), {means[AGE].mean():.2f} with none"
        )
    return [f"Fifty shows (Impatient Bandits), average regret at day {HORIZON}: {'; '.join(told)}."]


ARTEFACT = Artefact(
    id="shows",
    order=5,
    section=section,
    experiments=experiments,
    measurements=(Measurement(name="shows", kind=ShowRun, measure=measured),),
    findings=findings,
)

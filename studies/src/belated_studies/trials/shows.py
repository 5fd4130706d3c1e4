"""Fifty shows and their listeners: the scene of Impatient Bandits, where a reward comes in daily bits for two months.

The shows follow the recipe of the authors' published code (github.com/spotify-research/impatient-bandits): a listener
returns on some days until churning. Their agent has a prior that was fitted beforehand to 200 other shows, with the
covariance of all days; ours has none, or its λ alone from these shows.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from belated.agents import LearnByAge
from belated.delays import Constant
from belated.environments.trials import Trial
from belated.evaluation import mean_interval
from belated.runner import Experiment
from belated.types import Floats
from belated_studies.cells_and_curves import cell, final_regret
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Played
from belated_studies.trials.settings import AGE, FIRST_SEED, MATURE, NAMES, Size

SHOWS, OTHERS, LISTENERS, DAYS, HORIZON = 50, 200, 1000, 59, 180
PER_DAY = (10, 50)
SEEDS = 10
FITTED = "by-age-fitted"
THEIRS = {10: (1.31, 1.81), 50: (0.78, None)}
"""Average regret at day 180 that is reported for their agent, and for one that waits, by decisions a day."""


@cache
def listened() -> Floats:
    """Return on which days each listener of each show came back, shape (shows, listeners, days)."""
    rng, days = np.random.default_rng(42), np.arange(DAYS)
    root = np.linalg.cholesky(1.2 * np.exp(-np.abs(days[:, np.newaxis] - days) / 8.0))
    week = -np.abs(np.sin(np.pi * days / 7))
    found = np.zeros((OTHERS + SHOWS, LISTENERS, DAYS))
    for show in found:
        leaving, spread = _logistic(0.1 * rng.normal() - 0.4), rng.uniform(0.7, 1.5)
        rate = -0.5 + 0.1 * root @ rng.normal(size=DAYS) + rng.uniform(0.1, 1.0) * week
        came = rng.random((LISTENERS, DAYS)) < _logistic(rate)
        stays = rng.geometric(rng.beta(spread * leaving, spread * (1.0 - leaving), size=LISTENERS)) - 1
        show[:] = came & (days < stays[:, np.newaxis])
    return found


def _logistic(x: Floats | float) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(x))))


def fitted_ridge() -> float:
    """Return λ of the other shows: the variance within a show over that between shows."""
    total = listened()[:OTHERS].sum(axis=2)
    return float(total.var(axis=1).mean() / total.mean(axis=1).var())


def trial(per_day: int) -> Trial:
    """Return the shows as arms; a listener reports every day on which they came back."""
    traces = listened()[OTHERS:].reshape(SHOWS * LISTENERS, DAYS)
    ages = np.sort(np.where(traces > 0, (np.arange(DAYS) + 1) / DAYS, np.inf), axis=1)
    ages = ages[:, : int(traces.sum(axis=1).max())]
    who = np.arange(SHOWS * LISTENERS).reshape(1, SHOWS, LISTENERS)
    chances = np.full(who.shape, 1.0 / LISTENERS)
    return Trial(who, chances, ages, np.ones(ages.shape), rounds=DAYS * per_day, name=f"shows-{per_day}")


def experiments(size: Size) -> list[Experiment]:
    """Return ten and fifty decisions a day."""
    found = []
    for per_day in PER_DAY:
        world = trial(per_day)
        agents = {
            AGE: LearnByAge(window=world.window),
            FITTED: LearnByAge(window=world.window, ridge=fitted_ridge()),
            MATURE: LearnByAge(window=world.window, ages=1),
        }
        found.append(
            Experiment(
                name=world.name,
                environments=world,
                agents=agents,
                delays=Constant(0),
                episodes=HORIZON * per_day,
                seeds=range(FIRST_SEED, FIRST_SEED + min(SEEDS, size.seeds)),
                record_every=HORIZON * per_day,
            )
        )
    return found


def averages(played: Played[Size], per_day: int) -> dict[str, Floats]:
    """Return the average regret of a decision of each run, by agent."""
    results = played.results[f"shows-{per_day}"]
    return {agent: final_regret(results, agent=agent) / (HORIZON * per_day) for agent in (AGE, FITTED, MATURE)}


def section(played: Played[Size]) -> Section:
    """Return average regret beside what is reported of theirs."""
    rows: list[Row] = []
    for per_day in PER_DAY:
        ours = [cell(mean_interval(values)) for values in averages(played, per_day).values()]
        rows.append([f"{per_day}", *ours, *(Cell(value=value) for value in THEIRS[per_day])])
    columns = ["Decisions a day", NAMES[AGE], f"the same, λ = {fitted_ridge():.0f}", NAMES[MATURE]]
    columns += ["theirs, reported", "theirs waiting, reported"]
    caption = (
        f"Average regret of a decision after {HORIZON} days, in days on which a listener comes back; {SHOWS} shows. "
        "Theirs is what is reported for their scene, with other draws of listeners and a prior fitted beforehand to "
        f"200 other shows; λ = {fitted_ridge():.0f} is all that we took from those."
    )
    table = Table(id="shows-table", title="Fifty shows", caption=caption, columns=columns, rows=rows)
    return Section(id="shows", title="Rewards in daily bits", tables=[table])


def findings(played: Played[Size]) -> list[str]:
    """Return the bar of this scene, met or missed."""
    told = []
    for per_day in PER_DAY:
        plain, fitted = (averages(played, per_day)[agent].mean() for agent in (AGE, FITTED))
        told.append(f"{per_day} decisions a day {plain:.2f}, with λ fitted {fitted:.2f}, theirs {THEIRS[per_day][0]}")
    return [f"Fifty shows (Impatient Bandits), average regret at day {HORIZON}: {'; '.join(told)}."]


ARTEFACT = Artefact(id="shows", order=5, section=section, experiments=experiments, findings=findings)

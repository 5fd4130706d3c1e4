"""Whether another likelihood than the Gaussian would pay: rewards that are 0 or 1, and revenue that is mostly zero.

Beside a model at its defaults play Thompson samplers that are told the kind of the rewards: logistic regression by
Laplace's approximation, and for revenue that times the mean of log-normal amounts, both fitted anew as rewards come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import MemoryStore, Model, ModelSettings
from belated.types import Floats
from benchmarks.measure import Measure
from benchmarks.problems import Effort

ACTIONS, NUMBERS = 5, 8
#: The mean of the logits, so that about so many of the rewards are not zero.
RATES = {"a third": -0.8, "3 %": -3.8}
#: A fit is made anew when there are so many times the rewards of the latest.
_ANEW = 1.05


class Problem(NamedTuple):
    """Rounds: the context with a constant, the chance of each action, and what each brings."""

    contexts: Floats
    expected: Floats
    rewards: Floats


def problem(rounds: int, rate: float, revenue: bool, seed: int) -> Problem:
    """Return rounds whose chances are logistic in the context; revenue is log-normal where there is any."""
    rng = stream(seed, "likelihoods")
    contexts = np.concatenate([np.ones((rounds, 1)), rng.standard_normal((rounds, NUMBERS))], axis=1)
    weights = 0.5 * rng.standard_normal((1 + NUMBERS, ACTIONS))
    weights[0] += rate
    chances = 1.0 / (1.0 + np.exp(-contexts @ weights))
    bought = rng.random((rounds, 1)) < chances
    if not revenue:
        return Problem(contexts, chances, bought.astype(np.float64))
    logs = contexts @ (0.3 * rng.standard_normal((1 + NUMBERS, ACTIONS))) + 3.0
    amounts = np.exp(logs + rng.standard_normal((rounds, 1)))
    return Problem(contexts, chances * np.exp(logs + 0.5), np.where(bought, amounts, 0.0))


def gaussian(given: Problem, seed: int) -> float:
    """Return what a model at its defaults earns, in expectation of its choices."""
    names = [f"x{i}" for i in range(NUMBERS)]
    table = {"actions": [str(i) for i in range(ACTIONS)], "features": names, "silence": {"kind": "unknown"}}
    model = Model("ads", ModelSettings.from_table({**table, "seed": seed}), MemoryStore())
    earned = 0.0
    for x, expected, rewards in zip(given.contexts, given.expected, given.rewards, strict=True):
        choice = model.decide(dict(zip(names, x[1:].tolist(), strict=True)))
        model.feedback(choice.id, float(rewards[int(choice.action)]))
        earned += float(expected[int(choice.action)])
    return earned


class Logistic:
    """Weights of one action, N(w, H⁻¹) by Laplace's approximation with a standard normal prior."""

    def __init__(self) -> None:
        self.mean: Floats = np.zeros(1 + NUMBERS)
        self.root: Floats = np.eye(1 + NUMBERS)

    def fit(self, x: Floats, y: Floats) -> None:
        """Newton's steps from the latest fit."""
        for _ in range(4):
            p = 1.0 / (1.0 + np.exp(-x @ self.mean))
            precision = (x.T * (p * (1.0 - p))) @ x + np.eye(1 + NUMBERS)
            step: Floats = np.linalg.solve(precision, x.T @ (y - p) - self.mean)
            self.mean += step / max(1.0, float(np.abs(step).max()))
        self.root = np.linalg.cholesky(np.linalg.inv(precision))


class Linear:
    """Weights of one action for the logarithm of what was bought, with the noise known and a wide prior."""

    def __init__(self) -> None:
        self.mean, self.root = np.zeros(1 + NUMBERS), 3.0 * np.eye(1 + NUMBERS)

    def fit(self, x: Floats, y: Floats) -> None:
        """Solve for the mean and a root of the covariance."""
        covariance = np.linalg.inv(x.T @ x + np.eye(1 + NUMBERS) / 9.0)
        self.mean, self.root = covariance @ (x.T @ y), np.linalg.cholesky(covariance)


def told(given: Problem, seed: int, *, revenue: bool) -> float:
    """Return what Thompson sampling earns that is told the kind of the rewards, in expectation of its choices."""
    rng, earned = stream(seed, "told"), 0.0
    chances, amounts = [Logistic() for _ in range(ACTIONS)], [Linear() for _ in range(ACTIONS)]
    seen: list[list[int]] = [[] for _ in range(ACTIONS)]
    fitted = [0] * ACTIONS
    for t, x in enumerate(given.contexts):
        score = np.array([x @ (each.mean + each.root @ rng.standard_normal(x.size)) for each in chances])
        if revenue:  # the chance times the mean amount, in logarithms
            score = -np.log1p(np.exp(-score))
            score += [x @ (each.mean + each.root @ rng.standard_normal(x.size)) for each in amounts]
        action = int(score.argmax())
        earned += float(given.expected[t, action])
        rows = seen[action]
        rows.append(t)
        if len(rows) >= max(_ANEW * fitted[action], fitted[action] + 1):
            fitted[action] = len(rows)
            y = given.rewards[rows, action]
            chances[action].fit(given.contexts[rows], (y > 0.0).astype(np.float64))
            if revenue and (y > 0.0).any():
                some = np.array(rows)[y > 0.0]
                amounts[action].fit(given.contexts[some], np.log(given.rewards[some, action]))
    return earned


def likelihoods(effort: Effort) -> list[Measure]:
    """Compare what both earn, run by run, as shares of what the best actions would bring."""
    count, rounds = (20, 4_000) if effort.patient else (2, 200)
    found = []
    with threadpool_limits(1):
        for revenue in (False, True):
            for name, rate in RATES.items():
                shares = []
                for seed in range(count):
                    given = problem(rounds, rate, revenue, seed)
                    best, chance = float(given.expected.max(axis=1).sum()), float(given.expected.mean(axis=1).sum())
                    both = gaussian(given, seed), told(given, seed, revenue=revenue)
                    shares.append([*(each / best for each in both), chance / best])
                ours, theirs, chance = np.array(shares).mean(axis=0)
                more = 100.0 * (np.array(shares)[:, 1] - np.array(shares)[:, 0])
                error = 2.0 * float(more.std(ddof=1)) / math.sqrt(count)
                kind = "revenue" if revenue else "0 or 1"
                other = "logistic times log-normal" if revenue else "logistic"
                note = f"± {error:.2g} (two standard errors), {rounds} rounds, {count} runs; "
                note += f"{other} {100 * theirs:.1f} %, Gaussian {100 * ours:.1f} %, "
                note += f"at random {100 * chance:.1f} % of the best"
                what = f"{kind}, {name} not zero: what a likelihood of its own adds"
                found.append(Measure(what, (float(more.mean()),), "% of the best", None, note))
    return found

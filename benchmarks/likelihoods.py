"""Whether another likelihood than the Gaussian pays: rewards that are 0 or 1, and revenue that is mostly zero.

On 0 or 1 plays, beside a model at its defaults, Thompson sampling by logistic regression (Laplace's approximation,
fitted anew as rewards come). On revenue plays the same model with `likelihood = "revenue"`. VowpalWabbit plays the same
rounds. Tables are those of scikit-learn: the right class sells ten times as often as the others, and each class has its
own mean of amounts. The other problems are generated, logistic and log-linear in the context.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.streams import stream
from belated.decisions import MemoryStore, Model, ModelSettings
from belated.types import Floats
from belated_studies.peer_environments import PeerError, cache_folder, run_script
from benchmarks.learning import load
from benchmarks.measure import Measure, at_least, unmeasured
from benchmarks.peers import SCRIPTS, peers, prepare
from benchmarks.problems import Effort

ACTIONS, NUMBERS = 5, 8
#: The mean of the logits, so that about so many of the rewards are not zero.
RATES = {"a third": -0.8, "3 %": -3.8}
TABLES = ("wine", "breast-cancer", "digits")
#: How often a sale follows the right class, and another.
RIGHT, WRONG = 0.10, 0.01
#: A fit is made anew when there are so many times the rewards of the latest.
_ANEW = 1.05
#: Runs begin with this seed; the prior of amounts was chosen on those from 0 on.
FIRST = 1000

Tell = Callable[[str], None]


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


def table(name: str, rounds: int, revenue: bool, seed: int) -> Problem:
    """Return rounds of rows of a table: a sale is likelier if the action is the row's class."""
    rng, (rows, classes) = stream(seed, f"likelihoods of {name}"), load(name)
    shown = rng.integers(len(rows), size=rounds)
    contexts = np.concatenate([np.ones((rounds, 1)), rows[shown]], axis=1)
    actions = np.arange(int(classes.max()) + 1)
    chances = np.where(classes[shown][:, None] == actions, RIGHT, WRONG)
    sold = rng.random((rounds, 1)) < chances
    if not revenue:
        return Problem(contexts, chances, sold.astype(np.float64))
    logs = 3.0 + 0.3 * rng.standard_normal(len(actions))
    amounts = np.exp(logs + rng.standard_normal((rounds, 1)))
    return Problem(contexts, chances * np.exp(logs + 0.5), np.where(sold, amounts, 0.0))


def model(given: Problem, seed: int, likelihood: str = "gaussian") -> float:
    """Return what a model at its defaults, but for the likelihood, earns, in expectation of its choices."""
    names = [f"x{i}" for i in range(1, given.contexts.shape[1])]
    actions = [str(i) for i in range(given.expected.shape[1])]
    settings = {"actions": actions, "features": names, "silence": {"kind": "unknown"}, "likelihood": likelihood}
    made = Model("ads", ModelSettings.from_table({**settings, "seed": seed}), MemoryStore())
    earned = 0.0
    for x, expected, rewards in zip(given.contexts, given.expected, given.rewards, strict=True):
        choice = made.decide(dict(zip(names, x[1:].tolist(), strict=True)))
        made.feedback(choice.id, float(rewards[int(choice.action)]))
        earned += float(expected[int(choice.action)])
    return earned


class Logistic:
    """Weights of one action, N(w, H⁻¹) by Laplace's approximation with a standard normal prior."""

    def __init__(self, size: int) -> None:
        self.mean: Floats = np.zeros(size)
        self.root: Floats = np.eye(size)

    def fit(self, x: Floats, y: Floats) -> None:
        """Newton's steps from the latest fit."""
        for _ in range(4):
            p = 1.0 / (1.0 + np.exp(-x @ self.mean))
            precision = (x.T * (p * (1.0 - p))) @ x + np.eye(self.mean.size)
            step = np.asarray(np.linalg.solve(precision, x.T @ (y - p) - self.mean), np.float64)
            self.mean = self.mean + step / max(1.0, float(np.abs(step).max()))
        self.root = np.linalg.cholesky(np.linalg.inv(precision))


def logistic(given: Problem, seed: int) -> float:
    """Return what Thompson sampling by logistic regression earns, in expectation of its choices."""
    rng, earned, (size, actions) = stream(seed, "told"), 0.0, (given.contexts.shape[1], given.expected.shape[1])
    chances, fitted = [Logistic(size) for _ in range(actions)], [0] * actions
    seen: list[list[int]] = [[] for _ in range(actions)]
    for t, x in enumerate(given.contexts):
        action = int(np.argmax([x @ (each.mean + each.root @ rng.standard_normal(size)) for each in chances]))
        earned += float(given.expected[t, action])
        rows = seen[action]
        rows.append(t)
        if len(rows) >= max(_ANEW * fitted[action], fitted[action] + 1):
            fitted[action] = len(rows)
            chances[action].fit(given.contexts[rows], given.rewards[rows, action])
    return earned


def others(runs: Sequence[Problem], effort: Effort, tell: Tell) -> dict[str, Floats | str]:
    """Let VowpalWabbit play; return what it earns in each run, or why it did not play."""
    peer = replace(peers()["vowpalwabbit"], script=SCRIPTS / "likelihood_vowpalwabbit.py")
    try:
        prepare(peer, effort, tell, cache_folder())
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "rounds.npz"
            np.savez(data, contexts=[each.contexts for each in runs], rewards=[each.rewards for each in runs])
            answer = run_script(peer, cache_folder(), data)
    except PeerError as error:
        return {"VowpalWabbit": str(error)}
    rounds = np.arange(len(runs[0].contexts))
    return {
        f"VowpalWabbit's {way}": np.array(
            [each.expected[rounds, chosen].sum() for each, chosen in zip(runs, actions, strict=True)]
        )
        for way, actions in answer.items()
    }


def problems(rounds: int, revenue: bool) -> dict[str, Callable[[int], Problem]]:
    """Return what is played, by name: each makes the rounds of a seed."""
    made: dict[str, Callable[[int], Problem]] = {
        f"{name}, 1 or 10 %": lambda seed, name=name: table(name, rounds, revenue, seed)  # type: ignore[misc]
        for name in TABLES
    }
    made |= {
        f"generated, {name}": lambda seed, rate=rate: problem(rounds, rate, revenue, seed)  # type: ignore[misc]
        for name, rate in RATES.items()
    }
    return made


def likelihoods(effort: Effort, tell: Tell) -> list[Measure]:
    """Compare what they earn, run by run, as shares of what the best actions would bring."""
    count, rounds = (20, 4_000) if effort.patient else (2, 200)
    found = []
    with threadpool_limits(1):
        for revenue in (False, True):
            for name, make in problems(rounds, revenue).items():
                what = f"{'revenue' if revenue else '0 or 1'}, {name}"
                tell(f"playing {what}")
                seeds = range(FIRST, FIRST + count)
                runs = [make(seed) for seed in seeds]
                best = np.array([each.expected.max(axis=1).sum() for each in runs])
                chance = 100.0 * float(np.mean([each.expected.mean() * rounds for each in runs] / best))
                ours = np.array([model(*each) for each in zip(runs, seeds, strict=True)]) / best
                note = f"{rounds} rounds, {count} runs; at random {chance:.1f}"
                found.append(Measure(f"{what}: Gaussian", (100.0 * float(ours.mean()),), "% of the best", None, note))
                other = 'likelihood = "revenue"' if revenue else "logistic regression"
                plays = [
                    model(*each, "revenue") if revenue else logistic(*each) for each in zip(runs, seeds, strict=True)
                ]
                rivals: dict[str, Floats | str] = {other: np.array(plays), **others(runs, effort, tell)}
                for rival, earned in rivals.items():
                    if isinstance(earned, str):
                        found.append(unmeasured(f"{what}: {rival}", earned))
                        continue
                    more = 100.0 * (earned / best - ours)
                    error = (
                        f"± {2.0 * float(more.std(ddof=1)) / math.sqrt(count):.2g} (two standard errors, run by run)"
                    )
                    bar = at_least(0.0) if revenue and rival == other else None
                    found.append(
                        Measure(f"{what}: {rival} less Gaussian", (float(more.mean()),), "% of the best", bar, error)
                    )
    return found

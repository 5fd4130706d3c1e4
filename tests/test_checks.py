"""The conformance suite: every algorithm passes it, and every way of breaking the contract is caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np
import pytest

import belated
from belated import checks
from belated.algorithms import ALGORITHMS
from belated.types import Agent, Algorithm, Feedback, Policy, Problem

VARIANTS: dict[str, Algorithm] = {
    **{
        kind: algorithm()
        for kind, algorithm in ALGORITHMS.items()
        if all(each.default is not MISSING for each in fields(algorithm))
    },
    "qpm-d": belated.QPMD(base=belated.DelayedPSVI()),
    "bold": belated.BOLD(base=belated.DelayedPSVI()),
    "lpsvi-collapsed": belated.DelayedLPSVI(sampler="collapsed"),
    "lpsvi-preconditioned": belated.DelayedLPSVI(sampler="preconditioned", warm_start="step"),
    "lpsvi-cold": belated.DelayedLPSVI(warm_start="cold"),
    "ucbvi-growing": belated.DelayedUCBVI(bonus_form="growing"),
    "psvi-first": belated.DelayedPSVI(ties="first"),
}


@pytest.mark.parametrize("check", checks.ALL, ids=lambda check: check.__name__)
@pytest.mark.parametrize("algorithm", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_algorithm_conforms(algorithm: Algorithm, check: checks.Check) -> None:
    check(algorithm)


@dataclass(frozen=True)
class Broken:
    """An algorithm whose agents are sound but for what `spoil` does to them."""

    spoil: Callable[[Any, Problem], Agent]

    def start(self, problem: Problem) -> Agent:
        return self.spoil(belated.DelayedPSVI().start(problem), problem)


class Around:
    """Passes everything on to a sound agent; subclasses break one thing."""

    def __init__(self, inner: Any, problem: Problem) -> None:
        self.inner, self.problem = inner, problem

    def plan(self, rng: np.random.Generator) -> Policy:
        policy: Policy = self.inner.plan(rng)
        return policy

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.inner.learn(batch)


class PlansOutOfRange(Around):
    def plan(self, rng: np.random.Generator) -> Policy:
        return Policy(super().plan(rng).actions + self.problem.actions)


class OwnRandomness(Around):
    def plan(self, rng: np.random.Generator) -> Policy:
        return super().plan(np.random.default_rng())


class SharedMemory(Around):
    shared: list[Feedback] = []  # noqa: RUF012 - shared on purpose: it is the mistake

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.shared.extend(batch)

    def plan(self, rng: np.random.Generator) -> Policy:
        table = np.full((self.problem.horizon, self.problem.states), min(len(self.shared), 1))
        return Policy(table)


class CountsCalls(Around):
    calls = 0

    def learn(self, batch: Sequence[Feedback]) -> None:
        self.calls += 1
        super().learn(batch)

    def plan(self, rng: np.random.Generator) -> Policy:
        return Policy((super().plan(rng).actions + self.calls) % self.problem.actions)


class LearnsBeforeItLooks(Around):
    def learn(self, batch: Sequence[Feedback]) -> None:
        for feedback in batch:
            self.inner.learn([feedback])


class SwallowsErrors(Around):
    def learn(self, batch: Sequence[Feedback]) -> None:
        try:
            self.inner.learn(batch)
        except ValueError:
            return


@pytest.mark.parametrize(
    ("check", "mistake", "message"),
    [
        (checks.acts_before_any_feedback, PlansOutOfRange, "actions must be below"),
        (checks.same_seed_same_actions, OwnRandomness, "must come from plan's rng"),
        (checks.agents_share_nothing, SharedMemory, "because another one learned"),
        (checks.order_and_batching_do_not_matter, CountsCalls, "depend on the order of feedback"),
        (checks.zero_delay_is_undelayed, CountsCalls, "zero delay differs from no delay"),
        (checks.late_feedback_changes_nothing_before_it_arrives, OwnRandomness, "plans depend on more than feedback"),
        (checks.bad_feedback_changes_nothing, LearnsBeforeItLooks, "changed the plans"),
        (checks.bad_feedback_changes_nothing, SwallowsErrors, "learn accepted"),
    ],
)
def test_every_mistake_is_caught(check: checks.Check, mistake: type[Around], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(Broken(mistake))


def test_a_forgetful_save_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = belated.algorithms.Learner.restore
    monkeypatch.setattr(
        belated.algorithms.Learner,
        "restore",
        lambda self, memory: real(self, {**memory, "factor": memory["factor"] * 2}),
    )
    with pytest.raises(AssertionError, match="goes on differently"):
        checks.survives_a_round_trip(belated.DelayedPSVI())


def test_check_agent_runs_them_all() -> None:
    checks.check_agent(Broken(Around))
    with pytest.raises(AssertionError):
        checks.check_agent(Broken(PlansOutOfRange))

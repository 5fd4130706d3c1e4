"""Planning rarely: when it plans, that it plans as its base does, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import belated
from belated._kernels.streams import stream
from belated.agents import CompiledSettings, RareSwitching
from belated.agents._rare_switching import RareLearner
from belated.types import Feedback

WORLD = belated.RandomLinearMDP(states=4, actions=3, dimension=3, horizon=3, seed=1, bernoulli=True)
BASES: dict[str, CompiledSettings] = {
    "psvi": belated.DelayedPSVI(),
    "lpsvi": belated.DelayedLPSVI(steps=5),
    "lpsvi-preconditioned": belated.DelayedLPSVI(sampler="preconditioned"),
    "ucbvi": belated.DelayedUCBVI(bonus=0.5),
    "tabular-ucbvi": belated.TabularUCBVI(),
    "greedy": belated.Greedy(),
    "epsilon-greedy": belated.EpsilonGreedy(),
}


def late(count: int) -> list[Feedback]:
    rng = stream(3, "environment")
    policies = stream(4, "agent").integers(3, size=(count, 3, 4))
    return [Feedback(k, WORLD.rollout(belated.TablePolicy(table), rng)) for k, table in enumerate(policies)]


#: Each base is another compilation of the loop, of ten seconds.
QUICK = ("psvi", "tabular-ucbvi")
EVERY_BASE = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BASES]


@pytest.mark.parametrize("name", EVERY_BASE)
def test_planning_every_time_is_the_base_itself(name: str) -> None:
    base = BASES[name]
    ours, theirs = (
        belated.simulate(WORLD, algorithm, belated.Poisson(3), episodes=60, seed=1)
        for algorithm in (RareSwitching(base=base, growth=None, every=1), base)
    )
    assert_frame_equal(ours, theirs, check_exact=True)


def test_it_plans_when_a_determinant_has_doubled() -> None:
    settings = RareSwitching(base=BASES["psvi"])
    agent = settings.start(WORLD.problem)
    rng = stream(0, "agent")
    agent.plan(rng)
    omega = np.tile(np.eye(3), (3, 1, 1))
    mark, planned = np.linalg.slogdet(omega)[1], 1
    for one in late(60):
        agent.learn([one])
        for h in range(3):
            phi = WORLD.features[one.trajectory.rows[h], one.trajectory.actions[h]]
            omega[h] += np.outer(phi, phi)
        now = np.linalg.slogdet(omega)[1]
        if (now - mark).max() >= np.log(2):
            mark, planned = now, planned + 1
        agent.plan(rng)
        assert isinstance(agent, RareLearner)
        assert agent.plans == planned
    assert 3 < planned < 20


def test_it_plans_on_a_schedule_whatever_arrives() -> None:
    agent = RareSwitching(base=BASES["psvi"], growth=None, every=5).start(WORLD.problem)
    rng = stream(0, "agent")
    seen = []
    for one in late(20):
        agent.plan(rng)
        agent.learn([one])
        assert isinstance(agent, RareLearner)
        seen.append(agent.plans)
    assert seen == [1 + k // 5 for k in range(20)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base": 3}, "base must be the settings of a compiled algorithm"),
        ({"base": belated.MultiBatch(base=belated.Greedy())}, "base must be the settings of a compiled algorithm"),
        ({"base": RareSwitching(base=belated.Greedy())}, "base must be the settings of a compiled algorithm"),
        ({"base": belated.OTFLinTS()}, "base must be an algorithm that learns from feedback only"),
        ({"growth": 1.0}, "growth must be a finite number > 1, got 1.0"),
        ({"every": 0}, "every must be an integer >= 1, got 0"),
        ({"growth": None}, "growth and every must not both be None"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        replace(RareSwitching(base=belated.Greedy()), **changes)  # type: ignore[arg-type]


def test_a_base_without_information_is_planned_on_a_schedule_only() -> None:
    with pytest.raises(belated.InvalidInputError, match="growth must be None, and every an integer: DelayedPHE"):
        RareSwitching(base=belated.DelayedPHE(), every=3).start(WORLD.problem)
    agent = RareSwitching(base=belated.RandomPolicy(), growth=None, every=3).start(WORLD.problem)
    rng = stream(0, "agent")
    for k, feedback in enumerate(late(6)):
        agent.plan(rng)
        agent.learn([feedback])
        assert isinstance(agent, RareLearner)
        assert agent.plans == 1 + k // 3


def test_memory_that_does_not_fit_changes_nothing() -> None:
    agent = RareSwitching(base=BASES["psvi"]).start(WORLD.problem)
    agent.learn(late(5))
    agent.plan(stream(0, "agent"))
    before = {name: values.copy() for name, values in agent.memory().items()}
    for name, bad in (("mark", np.full(3, np.nan)), ("policy", np.full((3, 4), 9)), ("base.factor", np.eye(2))):
        with pytest.raises(belated.InvalidInputError):
            agent.restore({**before, name: bad})
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, before[name])

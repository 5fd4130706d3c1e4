"""`RareSwitching` and `MultiBatch` in simulators, against their rules with dense determinants."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_simulators import HORIZON, MAPS, STATES, dense_features, feedback_of, problem_of, random_episodes

from belated import DelayedPSRL, DelayedPSVI, InvalidInputError, MultiBatch, RareSwitching
from belated.agents._switching import MultiBatchSimulatorAgent, RareSimulatorAgent
from belated.types import Floats, Trajectory

PLAYED = random_episodes(30)


def log_determinants(features: str, learned: list[Trajectory]) -> Floats:
    """Return log det Ω of every step, with σ = λ = 1."""
    phi = dense_features(MAPS[features])
    found = []
    for h in range(HORIZON):
        visited = np.array([phi[each.rows[h], each.actions[h]] for each in learned]).reshape(-1, phi.shape[2])
        found.append(np.linalg.slogdet(visited.T @ visited + np.eye(phi.shape[2]))[1])
    return np.array(found)


@pytest.mark.parametrize("features", MAPS)
def test_rare_switching_plans_when_a_determinant_has_grown(features: str) -> None:
    agent = RareSwitching(base=DelayedPSVI(), growth=1.9).start(problem_of(MAPS[features]))
    assert isinstance(agent, RareSimulatorAgent)
    feedback = feedback_of(MAPS[features], PLAYED)
    mark, plans, rng = log_determinants(features, []), 0, np.random.default_rng(0)
    weights = []
    for k in range(len(PLAYED)):
        agent.plan(rng)
        now = log_determinants(features, PLAYED[:k])
        if k == 0 or (now - mark).max() >= np.log(1.9):
            mark, plans = now, plans + 1
        assert agent.plans == plans, f"episode {k}"
        weights.append(agent.base.memory()["weights"])
        agent.learn([feedback[k]])
    assert 3 <= plans < len(PLAYED)
    assert len({each.tobytes() for each in weights}) == plans  # the weights are kept in between


def test_rare_switching_every_so_many_episodes() -> None:
    agent = RareSwitching(base=DelayedPSVI(), every=4).start(problem_of(MAPS["stacked"]))
    assert isinstance(agent, RareSimulatorAgent)
    counts = []
    for _ in range(10):
        agent.plan(np.random.default_rng(0))
        counts.append(agent.plans)
    assert counts == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("drop", [True, False])
def test_multi_batch_leaves_stragglers_out(drop: bool) -> None:
    agent = MultiBatch(base=DelayedPSVI(), drop_stragglers=drop).start(problem_of(MAPS["stacked"]))
    assert isinstance(agent, MultiBatchSimulatorAgent)
    feedback, rng = feedback_of(MAPS["stacked"], PLAYED), np.random.default_rng(0)
    growth, learned, first, mark = agent.settings.growth, list[int](), 0, log_determinants("stacked", [])
    arrived, batches = 0, 1
    for k in range(len(PLAYED)):
        agent.plan(rng)
        now = log_determinants("stacked", [PLAYED[each] for each in learned])
        if k == 0 or (arrived and (now - mark).max() >= np.log(growth)):
            mark, first, arrived, batches = now, k, 0, batches + (k > 0)
        origin = k if k % 2 else k - 4  # every other one comes late
        if origin < 0:
            continue
        agent.learn([feedback[origin]])
        if origin >= first or not drop:
            learned.append(origin)
            arrived += 1
        np.testing.assert_allclose(agent.information(), log_determinants("stacked", [PLAYED[e] for e in learned]))
    assert batches > 2
    assert (len(learned) < len(PLAYED) - 2) == drop


def test_a_policy_that_is_kept_is_the_same() -> None:
    agent = RareSwitching(base=DelayedPSVI(), every=5).start(problem_of(MAPS["joint"]))
    states = [MAPS["joint"].encode(s) for s in range(STATES)]
    policies = [agent.plan(np.random.default_rng(k)) for k in range(6)]
    tables = [[policy.act(h, s) for h in range(HORIZON) for s in states] for policy in policies]
    assert tables[0] == tables[1] == tables[4]
    assert tables[5] != tables[0]


@pytest.mark.parametrize("algorithm", [RareSwitching(base=DelayedPSRL(), every=2), MultiBatch(base=DelayedPSVI())])
def test_what_is_restored_is_what_was_saved(algorithm: RareSwitching | MultiBatch) -> None:
    if isinstance(algorithm.base, DelayedPSRL):
        with pytest.raises(InvalidInputError):
            algorithm.start(problem_of(MAPS["stacked"]))
        return
    one, other = (algorithm.start(problem_of(MAPS["stacked"])) for _ in range(2))
    assert isinstance(one, MultiBatchSimulatorAgent)
    assert isinstance(other, MultiBatchSimulatorAgent)
    one.plan(np.random.default_rng(0))
    one.learn(feedback_of(MAPS["stacked"], PLAYED[:9]))
    other.restore(one.memory())
    for name, values in one.memory().items():
        np.testing.assert_array_equal(other.memory()[name], values)
    with pytest.raises(InvalidInputError):
        other.restore({**one.memory(), "counts": np.array([-1, 0, 0])})

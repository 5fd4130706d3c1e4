"""PSRL against a transcription that recounts everything, its posterior by its moments, and its learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from in_python import InPython
from polars.testing import assert_frame_equal

from belated._kernels.streams import stream
from belated.agents import RandomPolicy
from belated.agents._psrl import DelayedPSRL
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Lossy, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.testing import _agents as checks
from belated.types import Feedback, TablePolicy, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ENVIRONMENTS: dict[str, Callable[[], FiniteMDP]] = {
    "riverswim": lambda: RiverSwim(states=4, horizon=6),
    "random-linear": lambda: RandomLinearMDP(states=5, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True),
}
SHARED = pytest.mark.parametrize("shared", [False, True], ids=["per-step", "shared"])


class Naive:
    """PSRL as it is written: keeps every trajectory, counts them all again for each plan."""

    def __init__(self, mdp: FiniteMDP, settings: DelayedPSRL) -> None:
        self.S, self.A, self.H, self.settings = mdp.states, mdp.actions, mdp.horizon, settings
        self.data: list[tuple[int, Trajectory]] = []

    def model(self, steps: list[tuple[int, int, float, int]], rng: np.random.Generator) -> tuple[Floats, Floats]:
        transitions, rewards = np.zeros((self.S, self.A, self.S)), np.zeros((self.S, self.A))
        own = self.settings
        for s in range(self.S):
            for a in range(self.A):
                here = [(r, after) for state, action, r, after in steps if (state, action) == (s, a)]
                counts = np.array([sum(after == y for _, after in here) for y in range(self.S)])
                gammas = np.array([rng.standard_gamma(own.concentration + count) for count in counts])
                transitions[s, a] = gammas / gammas.sum()
                n = own.reward_visits + len(here)
                mean = (own.reward_visits * own.reward_mean + sum(r for r, _ in here)) / n
                rewards[s, a] = mean + own.noise / np.sqrt(n) * rng.standard_normal()
        return transitions, rewards

    def plan(self, episode: int, rng: np.random.Generator) -> Ints:
        arrived = [t for arrival, t in self.data if arrival <= episode - 1]
        steps = [
            [(int(t.rows[h]), int(t.actions[h]), float(t.rewards[h]), int(t.rows[h + 1])) for t in arrived]
            for h in range(self.H)
        ]
        policy, value = np.zeros((self.H, self.S), np.int64), np.zeros(self.S)
        if self.settings.shared:
            transitions, rewards = self.model([step for each in steps for step in each], rng)
        for h in reversed(range(self.H)):
            if not self.settings.shared:
                transitions, rewards = self.model(steps[h], rng)
            q = rewards + transitions @ value
            policy[h], value = q.argmax(axis=1), q.max(axis=1)
        return policy


@pytest.mark.parametrize("environment", list(ENVIRONMENTS))
@SHARED
@pytest.mark.parametrize(
    ("distribution", "settings"),
    [
        (Poisson(5), {}),
        (Constant(0), {"concentration": 0.2, "noise": 0.5}),
        (Lossy(Poisson(2), 0.4), {"reward_mean": 1.0, "reward_visits": 2.5, "concentration": 3.0}),
    ],
)
def test_policies_are_those_of_the_transcription(
    environment: str, shared: bool, distribution: DelayDistribution, settings: dict[str, Any]
) -> None:
    mdp = ENVIRONMENTS[environment]()
    chosen = DelayedPSRL(shared=shared, **settings)
    agent, naive = chosen.start(mdp.problem), Naive(mdp, chosen)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    ours, theirs, world = stream(1, "agent"), stream(1, "agent"), stream(1, "environment")
    for k, delay in enumerate(distribution.sample(stream(1, "delay"), 40)):
        agent.learn([Feedback(*each) for each in buffer.arrived(k)])
        policy = agent.plan(ours)
        np.testing.assert_array_equal(policy.actions, naive.plan(k, theirs), err_msg=f"policy of episode {k}")
        assert ours.bit_generator.state == theirs.bit_generator.state
        trajectory = mdp.rollout(TablePolicy(policy.actions), world)
        buffer.add(k, int(delay), trajectory)
        naive.data.append((k + int(delay), trajectory))


def test_the_posterior_has_its_moments() -> None:
    agent = DelayedPSRL(shared=True, concentration=0.5, reward_mean=0.25, reward_visits=2.0, noise=0.7).start(
        TableProblem(np.ones((3, 1, 1)), 4)
    )
    path = Trajectory(np.array([0, 0, 0, 2, 1]), np.zeros(4, np.int64), np.array([1.0, 0.0, 0.5, 0.25]))
    agent.learn([Feedback(0, path), Feedback(1, path)])
    rng, count = np.random.default_rng(0), 20_000
    distributions, rewards = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for i in range(count):
        agent.plan(rng)
        distributions[i], rewards[i] = agent.record.work.transitions, agent.record.work.rewards
    alpha = 0.5 + np.array([[4, 0, 2], [0, 0, 0], [0, 2, 0]])
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    np.testing.assert_allclose(distributions.mean(axis=0), mean, atol=5 * np.sqrt(0.25 / count))
    np.testing.assert_allclose(distributions.var(axis=0), mean * (1 - mean) / (total + 1), rtol=0.06, atol=1e-3)
    n = 2 + np.array([6, 0, 2])
    np.testing.assert_allclose(rewards.mean(axis=0), (0.5 + np.array([3.0, 0.0, 0.5])) / n, atol=0.02)
    np.testing.assert_allclose(rewards.var(axis=0), 0.49 / n, rtol=0.05)


@SHARED
@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda check: check.__name__)
def test_conformance(check: checks.Check, shared: bool) -> None:
    check(DelayedPSRL(shared=shared))


@SHARED
@pytest.mark.parametrize("distribution", [Constant(0), Poisson(6)], ids=["none", "poisson"])
def test_both_loops_give_the_same_rows_bit_for_bit(shared: bool, distribution: DelayDistribution) -> None:
    mdp, settings = ENVIRONMENTS["random-linear"](), DelayedPSRL(shared=shared)
    compiled = simulate(mdp, settings, distribution, episodes=200, seed=3)
    assert_frame_equal(
        compiled, simulate(mdp, InPython(settings), distribution, episodes=200, seed=3), check_exact=True
    )


@SHARED
def test_it_learns(shared: bool) -> None:
    mdp, episodes = RiverSwim(states=3, horizon=8), 600
    for seed in range(3):
        ours, at_random = (
            simulate(mdp, each, Poisson(5), episodes=episodes, seed=seed)["regret"][-1]
            for each in (DelayedPSRL(shared=shared, noise=0.3), RandomPolicy())
        )
        assert ours < (0.1 if shared else 0.3) * at_random


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("shared", [0, "yes", 1.0]),
        ("concentration", [0, -1.0, float("nan"), "1", None, True]),
        ("reward_mean", [float("inf"), None, "0"]),
        ("reward_visits", [0, -1.0, None]),
        ("noise", [-0.1, float("nan"), None]),
    ],
)
def test_bad_settings_are_named(name: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(InvalidInputError, match=name):
            DelayedPSRL(**{name: value})


@pytest.mark.parametrize(("array", "value"), [("followed", -1), ("followed", 2**62), ("reward_sums", 1.5)])
def test_a_memory_that_no_feedback_leaves_is_refused(array: str, value: float) -> None:
    agent = DelayedPSRL().start(RiverSwim(states=3, horizon=4).problem)
    memory = {name: values.copy() for name, values in agent.memory().items()}
    memory[array].flat[0] = value
    with pytest.raises(InvalidInputError, match=rf"memory\['{array}'\] must"):
        agent.restore(memory)

"""OTFLinUCB and OTFLinTS against a transcription that keeps every play, by hand, and reduced to ridge regression."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels.streams import stream
from belated.agents import (
    DelayedPSVI,
    OTFLinTS,
    OTFLinUCB,
    RandomPolicy,
    agent_from_dict,
)
from belated.agents._base import Learner
from belated.agents._otf import OTF, confidence
from belated.delays import (
    Constant,
    DelayByReward,
    DelayDistribution,
    FeedbackQueue,
    Geometric,
    Lossy,
    OutcomeDelays,
    Poisson,
)
from belated.environments import FiniteMDP, LinearBandit, RiverSwim
from belated.errors import InvalidInputError
from belated.runner import simulate
from belated.types import Feedback, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]

KINDS: list[type[OTF]] = [OTFLinUCB, OTFLinTS]
BOTH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
NEVER_A_ZERO = DelayByReward(zero=Lossy(Constant(0), missing=1.0), positive=Geometric(6))
FIXED = LinearBandit(actions=6, dimension=3, reward="conversion", seed=1)
CONTEXTS = LinearBandit(actions=4, dimension=3, sets="random", contexts=3, reward="conversion", seed=2)


class Naive:
    """The algorithms as they are written: every play is kept, every matrix made and inverted again."""

    def __init__(self, problem: TableProblem, settings: OTF) -> None:
        self.features, self.settings = problem.features, settings
        self.plays: list[Floats] = []
        self.converted: list[Floats] = []

    def matrix(self, plays: int) -> Floats:
        """Return V after so many plays."""
        out = self.settings.ridge * np.eye(self.features.shape[2])
        for x in self.plays[:plays]:
            out += np.outer(x, x)
        return out

    def moment(self) -> Floats:
        return np.sum(self.converted, axis=0) if self.converted else np.zeros(self.features.shape[2])

    def under_way(self) -> float:
        """Return the sum of the norms of the last m plays, each in the V of its time."""
        played = len(self.plays)
        recent = range(max(0, played - self.settings.window), played)
        return sum(float(np.sqrt(self.plays[s] @ np.linalg.inv(self.matrix(s)) @ self.plays[s])) for s in recent)

    def observe(self, delay: int, state: int, action: int, reward: float) -> None:
        if reward == 1.0 and delay <= self.settings.window:
            self.converted.append(self.features[state, action])

    def plan(self, state: int, rng: np.random.Generator) -> int:
        d, t, ridge = self.features.shape[2], len(self.plays) + 1, self.settings.ridge
        V = self.matrix(len(self.plays))
        inverse = np.linalg.inv(V)
        theta = inverse @ self.moment()
        f = math.sqrt(ridge) + math.sqrt(
            2 * math.log(1 / self.settings.delta) + d * math.log((d * ridge + t) / (d * ridge))
        )
        actions = self.features[state]
        if isinstance(self.settings, OTFLinTS):
            covariance = self.settings.scale**2 * (1 + self.under_way() / f) * inverse
            # the root of V⁻¹ that the library draws with, so that the draws can be compared: V = LLᵀ, V⁻¹ = L⁻ᵀL⁻¹
            root = np.linalg.inv(np.linalg.cholesky(np.linalg.inv(covariance))).T
            index = actions @ (theta + root @ rng.standard_normal(d))
        else:
            widths = np.sqrt(np.einsum("ai,ij,aj->a", actions, inverse, actions))
            index = actions @ theta + self.settings.scale * (2 * f + self.under_way()) * widths
        best = np.flatnonzero(index >= index.max() - 1e-12 * max(1.0, abs(index.max())))
        choice = int(best[int(rng.random() * best.size)]) if best.size > 1 else int(best[0])
        self.plays.append(actions[choice])
        return choice


def play(
    world: FiniteMDP, agent: Learner, distribution: DelayDistribution | OutcomeDelays, rounds: int, seed: int = 1
) -> Iterator[tuple[list[Feedback], int, int, np.random.Generator]]:
    """Play late rounds; yield after each plan what had arrived, the context, the choice and the agent's stream."""
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    rng, dynamics = stream(seed, "agent"), stream(seed, "environment")
    delays = distribution.sample(stream(seed, "delay"), rounds).reshape(rounds, -1)
    for k in range(rounds):
        batch = [Feedback(*each) for each in buffer.arrived(k)]
        agent.learn(batch)
        state = world.first_state(dynamics)
        policy = agent.plan_from(rng, state)
        yield batch, state, policy.act(0, state), rng
        seen = world.rollout(policy, dynamics, start=state)
        buffer.add(
            k, int(delays[k, distribution.outcome(seen) if isinstance(distribution, OutcomeDelays) else 0]), seen
        )


@BOTH
@pytest.mark.parametrize("world", [FIXED, CONTEXTS], ids=["fixed", "contexts"])
@pytest.mark.parametrize("distribution", [Constant(0), Poisson(5), NEVER_A_ZERO], ids=["none", "poisson", "silent"])
@pytest.mark.parametrize(("window", "scale", "ridge"), [(1, 1.0, 1.0), (5, 0.2, 0.3), (200, 0.05, 2.0)])
def test_it_does_what_its_transcription_does(
    kind: type[OTF],
    world: FiniteMDP,
    distribution: DelayDistribution | OutcomeDelays,
    window: int,
    scale: float,
    ridge: float,
) -> None:
    settings = kind(window=window, scale=scale, ridge=ridge, delta=0.1)
    agent, naive, other = settings.start(world.problem), Naive(world.problem, settings), stream(1, "agent")
    choices, ignored = set(), 0
    for k, (batch, state, action, rng) in enumerate(play(world, agent, distribution, 60)):
        for feedback in batch:
            t = feedback.trajectory
            delay = k - 1 - feedback.episode
            ignored += delay > window
            naive.observe(delay, int(t.rows[0]), int(t.actions[0]), float(t.rewards[0]))
        moment = naive.moment()
        assert naive.plan(state, other) == action
        assert rng.bit_generator.state == other.bit_generator.state
        memory = agent.memory()
        np.testing.assert_allclose(memory["factor"].T @ memory["factor"], naive.matrix(k + 1), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(memory["moment"], moment, rtol=1e-12)
        assert memory["norm_sum"][0] == pytest.approx(naive.under_way(), rel=1e-10)
        assert memory["planned"][0] == k + 1
        choices.add(action)
    assert len(choices) > 1
    assert (ignored > 0) == (distribution != Constant(0) and window < 10)


def test_the_confidence_width_by_hand() -> None:
    """With d = 2, λ = 1/2 and δ = e⁻² it is √½ + √(4 + 2·log(1 + t))."""
    problem = TableProblem(np.ones((1, 1, 2)), 1)
    agent, rng = OTFLinUCB(ridge=0.5, delta=math.exp(-2)).start(problem), np.random.default_rng(0)
    for t in range(1, 6):
        assert confidence(agent.record) == pytest.approx(math.sqrt(0.5) + math.sqrt(4 + 2 * math.log(1 + t)))
        agent.plan(rng)


def test_the_norms_of_the_last_plays_by_hand() -> None:
    """With x = 1 and λ = 1 the s-th play, from 0, has the norm 1/√(1 + s) in the V of its time."""
    agent, rng = OTFLinTS(window=3).start(TableProblem(np.ones((1, 1, 1)), 1)), np.random.default_rng(0)
    for k in range(1, 12):
        agent.plan(rng)
        expected = sum(1 / math.sqrt(1 + s) for s in range(max(0, k - 3), k))
        assert agent.memory()["norm_sum"][0] == pytest.approx(expected, rel=1e-14)
        assert agent.memory()["norms"].sum() == pytest.approx(expected, rel=1e-14)


def test_rounding_of_the_sum_cannot_pile_up() -> None:
    agent, rng = OTFLinTS(window=4).start(FIXED.problem), np.random.default_rng(0)
    agent.memory()["norm_sum"][0] = 1.0  # an error
    for _ in range(3):
        agent.plan(rng)
    assert agent.memory()["norm_sum"][0] == pytest.approx(agent.memory()["norms"].sum() + 1.0)
    agent.plan(rng)
    assert agent.memory()["norm_sum"][0] == agent.memory()["norms"].sum()


def feedback(episode: int, reward: float = 1.0, action: int = 2, state: int = 0) -> Feedback:
    return Feedback(episode, Trajectory(np.array([state, 0]), np.array([action]), np.array([reward])))


@BOTH
def test_only_conversions_within_the_window_count(kind: type[OTF]) -> None:
    """After 6 plays the feedback of round 5 has the delay 0, that of round 2 the delay 3."""
    x = FIXED.features[0, 2]
    for episode, counted in [(5, True), (2, True), (1, False), (0, False), (6, True), (40, True)]:
        agent, rng = kind(window=3).start(FIXED.problem), np.random.default_rng(0)
        for _ in range(6):
            agent.plan(rng)
        factor = agent.memory()["factor"].copy()
        agent.learn([feedback(episode)])
        np.testing.assert_array_equal(agent.memory()["moment"], x if counted else 0 * x)
        np.testing.assert_array_equal(agent.memory()["factor"], factor)


@BOTH
def test_zeros_may_be_reported_or_not(kind: type[OTF]) -> None:
    settings = kind(window=30, scale=0.3)
    told, untold = settings.start(FIXED.problem), settings.start(FIXED.problem)
    twin, zeros = stream(1, "agent"), 0
    for batch, state, action, _ in play(FIXED, told, Poisson(5), 80):
        ones = [each for each in batch if each.trajectory.rewards[0] > 0]
        zeros += len(batch) - len(ones)
        untold.learn(ones)
        assert untold.plan_from(twin, state).act(0, state) == action
        for name, values in told.memory().items():
            if name != "heard":
                np.testing.assert_array_equal(values, untold.memory()[name], err_msg=name)
    assert zeros > 10


@BOTH
def test_with_ones_only_and_no_delay_it_is_ridge_regression(kind: type[OTF]) -> None:
    agent, rng = kind(ridge=0.7).start(CONTEXTS.problem), stream(0, "agent")
    ridge = DelayedPSVI(ridge=0.7).start(CONTEXTS.problem)
    rows = []
    for k in range(40):
        state = k % CONTEXTS.states
        action = agent.plan_from(rng, state).act(0, state)
        rows.append(CONTEXTS.features[state, action])
        for learner in (agent, ridge):
            learner.learn([feedback(k, action=action, state=state)])
    memory, same = agent.memory(), ridge.memory()
    np.testing.assert_allclose(memory["factor"], same["factor"][0], rtol=1e-12)
    np.testing.assert_allclose(memory["moment"], same["reward_moment"][0], rtol=1e-12)
    x = np.array(rows)
    weights = np.linalg.solve(0.7 * np.eye(3) + x.T @ x, x.T @ np.ones(40))
    np.testing.assert_allclose(np.linalg.solve(memory["factor"].T @ memory["factor"], memory["moment"]), weights)


@BOTH
def test_it_learns_although_no_failure_is_ever_reported(kind: type[OTF]) -> None:
    def regret(algorithm: Any) -> float:
        runs = [simulate(FIXED, algorithm, NEVER_A_ZERO, episodes=3000, seed=seed) for seed in range(3)]
        return float(np.mean([rows["regret"][-1] - rows["regret"][-1001] for rows in runs]))

    assert regret(kind(window=40, scale=0.1)) < 0.2 * regret(RandomPolicy())


@BOTH
def test_the_context_must_be_told_if_there_are_several(kind: type[OTF]) -> None:
    agent, rng = kind().start(CONTEXTS.problem), np.random.default_rng(0)
    before = {name: values.copy() for name, values in agent.memory().items()}
    with pytest.raises(
        InvalidInputError, match=r"the context must be given, .*use plan_from\(rng, state\) instead of plan"
    ):
        agent.plan(rng)
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, before[name])
    one, same = kind().start(FIXED.problem), kind().start(FIXED.problem)
    for seed in range(5):
        ours = one.plan(np.random.default_rng(seed)).actions
        np.testing.assert_array_equal(ours, same.plan_from(np.random.default_rng(seed), 0).actions)
    np.testing.assert_array_equal(one.memory()["factor"], same.memory()["factor"])


@BOTH
def test_more_than_one_step_is_refused(kind: type[OTF]) -> None:
    for horizon in (2, 20):
        with pytest.raises(InvalidInputError, match=f"horizon must be 1, since {kind.__name__} is for bandits, got"):
            kind().start(RiverSwim(horizon=horizon).problem)


@BOTH
def test_settings(kind: type[OTF]) -> None:
    settings = kind(window=np.int64(7), scale=np.float64(0.5), delta=0.2, ridge=3.0)  # type: ignore[arg-type]
    plain = json.loads(json.dumps(settings.to_dict()))
    assert plain == {"algorithm": kind.kind, "window": 7, "scale": 0.5, "delta": 0.2, "ridge": 3.0}
    assert agent_from_dict(plain) == settings
    bad: dict[str, list[Any]] = {
        "window": [0, -1, 2.0, None, True],
        "scale": [-0.1, float("nan"), "1", None],
        "delta": [0.0, 1.0, -1, None],
        "ridge": [0.0, -1.0, float("inf"), None],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(InvalidInputError, match=f"^{name} must be"):
                kind(**{name: value})

"""Tabular UCBVI against a transcription that recounts everything, its bonuses by hand, and its updating."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from belated._kernels.streams import stream
from belated.agents import RandomPolicy
from belated.agents._base import Learner
from belated.agents._tabular_ucbvi import TabularUCBVI
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Lossy, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError, UnknownNameError
from belated.runner import simulate
from belated.types import Feedback, TablePolicy, TableProblem, Trajectory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ENVIRONMENTS: dict[str, Callable[[], FiniteMDP]] = {
    "riverswim": lambda: RiverSwim(states=4, horizon=6),
    "random-linear": lambda: RandomLinearMDP(states=5, actions=3, dimension=4, horizon=5, seed=3, bernoulli=True),
}
MDPS = pytest.mark.parametrize("environment", list(ENVIRONMENTS))
FORMS = pytest.mark.parametrize("form", ["hoeffding", "bernstein"])
UPDATES: dict[str, dict[str, Any]] = {
    "active": {"updating": "active"},
    "doubling": {"updating": "lazy"},
    "eager": {"updating": "lazy", "growth": 7.5},
    "tripling": {"updating": "lazy", "growth": 0.5},
}
UPDATING = pytest.mark.parametrize("updating", UPDATES.values(), ids=UPDATES.keys())


class Naive:
    """UCBVI as it is written: keeps every trajectory, counts them all again for each plan, one entry at a time."""

    def __init__(self, mdp: FiniteMDP, settings: TabularUCBVI) -> None:
        self.S, self.A, self.H, self.settings = mdp.states, mdp.actions, mdp.horizon, settings
        self.data: list[tuple[int, Trajectory]] = []
        self.last_counts: dict[tuple[int, int, int], int] | None = None
        self.policy: Ints = np.zeros((self.H, self.S), np.int64)
        self.values: Floats = np.zeros((self.H + 1, self.S))
        self.replans: list[int] = []

    def observe(self, arrival: int, trajectory: Trajectory) -> None:
        self.data.append((arrival, trajectory))

    def plan(self, episode: int, rng: np.random.Generator) -> Ints:
        arrived = [trajectory for arrival, trajectory in self.data if arrival <= episode - 1]
        counts = {
            (h, s, a): sum(bool(t.rows[h] == s and t.actions[h] == a) for t in arrived)
            for h in range(self.H)
            for s in range(self.S)
            for a in range(self.A)
        }
        if self.is_due(counts):
            self.replans.append(episode)
            self.last_counts = counts
            self.replan(arrived, rng)
        return self.policy.copy()

    def is_due(self, counts: dict[tuple[int, int, int], int]) -> bool:
        last = self.last_counts
        if last is None:
            return True
        if self.settings.updating == "active":
            return counts != last
        factor = 1 + 1 / Fraction(self.settings.growth)
        return any(n > last[key] and n >= factor * last[key] for key, n in counts.items())

    def replan(self, arrived: list[Trajectory], rng: np.random.Generator) -> None:
        for h in reversed(range(self.H)):
            for s in range(self.S):
                q = [min(self.action_value(arrived, h, s, a), self.H - h) for a in range(self.A)]
                best = max(q)
                ties = [a for a in range(self.A) if q[a] >= best - 1e-12 * max(1.0, abs(best))]
                draws = len(ties) > 1 and self.settings.ties == "random"
                self.policy[h, s] = ties[int(rng.random() * len(ties))] if draws else ties[0]
                self.values[h, s] = best

    def action_value(self, arrived: list[Trajectory], h: int, s: int, a: int) -> float:
        here = [t for t in arrived if t.rows[h] == s and t.actions[h] == a]
        n = len(here)
        if n == 0:
            return float(self.H - h)
        S, A, H, V = self.S, self.A, self.H, self.values[h + 1]
        L = math.log(5 * S * A * self.settings.episodes * H / self.settings.delta)
        P = [sum(bool(t.rows[h + 1] == y) for t in here) / n for y in range(S)]
        reward = sum(float(t.rewards[h]) for t in here) / n
        expected = sum(P[y] * V[y] for y in range(S))
        if self.settings.bonus_form == "hoeffding":
            bonus = 7 * H * L / math.sqrt(n)
        else:
            variance = sum(P[y] * (V[y] - expected) ** 2 for y in range(S))
            correction = 0.0
            for y in range(S):
                following = sum(bool(t.rows[h + 1] == y) for t in arrived)
                if P[y] > 0 and h < H - 1:
                    correction += P[y] * min(100**2 * H**3 * S**2 * A * L**2 / following, H**2)
            bonus = math.sqrt(8 * L * variance / n) + 14 * H * L / (3 * n) + math.sqrt(8 * correction / n)
        return float(reward + self.settings.bonus_scale * bonus + expected)


def play(
    mdp: FiniteMDP, settings: TabularUCBVI, distribution: DelayDistribution, episodes: int = 60
) -> Iterator[tuple[int, Learner, TablePolicy, Trajectory, int, np.random.Generator]]:
    """Play late episodes; yield after each the episode, the agent, what was planned and seen, the delay, the stream."""
    agent = settings.start(mdp.problem)
    buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
    rng, world = stream(1, "agent"), stream(1, "environment")
    for k, delay in enumerate(distribution.sample(stream(1, "delay"), episodes)):
        agent.learn([Feedback(*each) for each in buffer.arrived(k)])
        policy = agent.plan(rng)
        trajectory = mdp.rollout(policy, world)
        buffer.add(k, int(delay), trajectory)
        yield k, agent, policy, trajectory, int(delay), rng


def replans(mdp: FiniteMDP, settings: TabularUCBVI, distribution: DelayDistribution, episodes: int) -> list[int]:
    """Return the episodes in which the counts of the last plan changed."""
    times, before = [], np.full((mdp.horizon, mdp.states * mdp.actions), -1)
    for k, agent, *_ in play(mdp, settings, distribution, episodes):
        planned = agent.memory()["planned_visits"]
        if not np.array_equal(planned, before):
            times.append(k)
        before = planned.copy()
    return times


@MDPS
@FORMS
@UPDATING
@pytest.mark.parametrize("distribution", [Poisson(5), Lossy(Poisson(2), 0.4)], ids=["poisson", "lossy"])
@pytest.mark.parametrize(("scale", "ties"), [(0.003, "random"), (0.0, "first"), (0.03, "random")])
def test_policies_are_those_of_the_transcription(
    environment: str, form: str, updating: dict[str, Any], distribution: DelayDistribution, scale: float, ties: str
) -> None:
    mdp = ENVIRONMENTS[environment]()
    settings = TabularUCBVI(bonus_form=form, bonus_scale=scale, ties=ties, delta=0.1, episodes=60, **updating)
    naive, theirs = Naive(mdp, settings), stream(1, "agent")
    for k, agent, policy, trajectory, delay, rng in play(mdp, settings, distribution):
        np.testing.assert_array_equal(policy.actions, naive.plan(k, theirs), err_msg=f"policy of episode {k}")
        np.testing.assert_allclose(agent.record.work.values, naive.values, rtol=1e-10, err_msg=f"V of episode {k}")
        assert rng.bit_generator.state == theirs.bit_generator.state
        naive.observe(k + delay, trajectory)
    assert replans(mdp, settings, distribution, 60) == naive.replans
    assert len(naive.replans) > 5


def test_the_bernstein_bonus_by_hand() -> None:
    agent = TabularUCBVI(bonus_form="bernstein", bonus_scale=1e-3, delta=0.5, episodes=8).start(
        TableProblem(np.ones((2, 1, 1)), 2)
    )
    paths = [([0, 0, 0], [0.0, 0.5]), ([0, 0, 1], [0.0, 0.0]), ([0, 0, 0], [1.0, 0.25]), ([0, 1, 0], [0.0, 1.0])]
    agent.learn(
        [Feedback(k, Trajectory(np.array(s), np.zeros(2, np.int64), np.array(r))) for k, (s, r) in enumerate(paths)]
    )
    agent.plan(np.random.default_rng(0))
    L = math.log(320)  # 5·2·1·16/0.5
    near, far = 0.25 + 1e-3 * 28 * L / 9, 1.0  # the far state is capped at one remaining step
    variance = 3 / 16 * (far - near) ** 2
    bonus = math.sqrt(8 * L * variance / 4) + 28 * L / 12 + math.sqrt(8 / 4 * 4)  # H² = 4 is the smaller everywhere
    first = 0.25 + 1e-3 * bonus + (3 * near + far) / 4
    np.testing.assert_allclose(agent.record.work.values, [[first, 2.0], [near, far], [0.0, 0.0]], rtol=1e-14)


def test_the_correction_shrinks_with_many_visits_by_hand() -> None:
    agent = TabularUCBVI(bonus_form="bernstein", delta=0.5, episodes=1).start(TableProblem(np.ones((1, 1, 1)), 2))
    n, L = 10**8, math.log(20)
    counts = np.full((2, 1), n)
    agent.restore({**agent.memory(), "visits": counts, "followed": counts[:, :, np.newaxis]})
    agent.plan(np.random.default_rng(0))
    last = 28 * L / (3 * n)
    first = last + 28 * L / (3 * n) + math.sqrt(8 / n * 1e4 * 8 * L**2 / n)
    assert 1e4 * 8 * L**2 / n < 4
    np.testing.assert_allclose(agent.record.work.values[:, 0], [first, last, 0.0], rtol=1e-12)


@FORMS
def test_before_any_feedback_everything_is_as_good_as_it_can_be(form: str) -> None:
    agent = TabularUCBVI(bonus_form=form, ties="first").start(RiverSwim(states=3, horizon=4).problem)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert not agent.plan(rng).actions.any()
    assert rng.bit_generator.state == before
    np.testing.assert_array_equal(agent.record.work.values, np.repeat([[4.0], [3], [2], [1], [0]], 3, axis=1))


def one_state(action: int, episode: int) -> Feedback:
    return Feedback(episode, Trajectory(np.zeros(2, np.int64), np.array([action]), np.array([0.5])))


def replanned(agent: Learner) -> bool:
    before = agent.memory()["planned_visits"].copy()
    agent.plan(np.random.default_rng(0))
    return not np.array_equal(agent.memory()["planned_visits"], before)


@pytest.mark.parametrize(
    ("growth", "batch", "counts"),
    [
        (1.0, 1, [0, 1, 2, 4, 8, 16, 32]),
        (1, 3, [0, 3, 6, 12, 24]),
        (2.0, 1, [0, 1, 2, 3, 5, 8, 12, 18, 27]),
        (0.5, 1, [0, 1, 3, 9, 27]),
        (3.0, 1, [0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36]),
        (1e9, 1, list(range(41))),
        (1e-9, 1, [0, 1]),
    ],
)
def test_lazy_updating_waits_for_a_count_to_grow(growth: float, batch: int, counts: list[int]) -> None:
    agent = TabularUCBVI(updating="lazy", growth=growth).start(TableProblem(np.ones((1, 2, 1)), 1))
    seen = [0] if replanned(agent) else []
    for count in range(batch, 41, batch):
        assert agent.memory()["news"] == 0
        assert not replanned(agent)  # nothing has arrived
        agent.learn([one_state(0, count - i) for i in range(batch)])
        assert agent.memory()["news"] == 1
        if replanned(agent):
            seen.append(count)
    assert seen == counts
    agent.learn([one_state(1, 99)])
    assert replanned(agent)  # the first visit of the other action


def test_the_growth_of_a_count_is_not_rounded() -> None:
    agent = TabularUCBVI(updating="lazy", growth=10.0).start(TableProblem(np.ones((1, 1, 1)), 1))
    agent.learn([one_state(0, episode) for episode in range(1, 51)])
    assert replanned(agent)
    assert (1 + 1 / 10) * 50 > 55
    for arrived in range(51, 56):
        agent.learn([one_state(0, arrived)])
        assert replanned(agent) == (arrived == 55)


@MDPS
@pytest.mark.parametrize("growth", [0.5, 1.0, 4.0])
def test_lazy_updating_plans_seldom(environment: str, growth: float) -> None:
    mdp, episodes = ENVIRONMENTS[environment](), 400
    settings = TabularUCBVI(bonus_scale=0.003, updating="lazy", growth=growth, episodes=episodes)
    triples = mdp.horizon * mdp.states * mdp.actions
    plans = len(replans(mdp, settings, Poisson(3), episodes))
    assert plans <= 1 + triples * (1 + math.log(episodes) / math.log(1 + 1 / growth))
    assert plans < episodes * (0.4 if growth <= 1 else 0.8)


@MDPS
@FORMS
def test_lazy_updating_that_waits_for_nothing_is_active(environment: str, form: str) -> None:
    mdp = ENVIRONMENTS[environment]()
    active = TabularUCBVI(bonus_form=form, bonus_scale=0.003)
    lazy = TabularUCBVI(bonus_form=form, bonus_scale=0.003, updating="lazy", growth=1e12)
    for ours, theirs in zip(play(mdp, active, Poisson(4)), play(mdp, lazy, Poisson(4)), strict=True):
        np.testing.assert_array_equal(ours[2].actions, theirs[2].actions)
        assert ours[-1].bit_generator.state == theirs[-1].bit_generator.state
        for name, values in ours[1].memory().items():
            np.testing.assert_array_equal(theirs[1].memory()[name], values, err_msg=name)


@MDPS
@UPDATING
def test_the_memory_is_all_that_counts(environment: str, updating: dict[str, Any]) -> None:
    mdp = ENVIRONMENTS[environment]()
    settings = TabularUCBVI(bonus_scale=0.003, **updating)
    for _, agent, _, trajectory, _, rng in play(mdp, settings, Poisson(2)):
        plans = []
        for saved in (False, True):
            copy, copied_rng = settings.start(mdp.problem), np.random.default_rng()
            copy.restore(agent.memory())
            copied_rng.bit_generator.state = rng.bit_generator.state
            copy.learn([Feedback(10**6, trajectory)])
            if saved:  # feedback has been counted, but no plan has looked at it yet
                memory, copy = copy.memory(), settings.start(mdp.problem)
                copy.restore(memory)
            plans.append((copy.plan(copied_rng).actions.tolist(), copied_rng.bit_generator.state))
        assert plans[0] == plans[1]


@FORMS
@pytest.mark.parametrize("updating", ["active", "lazy"])
def test_it_learns(form: str, updating: str) -> None:
    mdp, episodes = RiverSwim(states=3, horizon=8), 600
    settings = TabularUCBVI(bonus_form=form, bonus_scale=0.002, episodes=episodes, updating=updating)
    for seed in range(3):
        regret, at_random = (
            (rows["optimal"] - rows["value"]).to_numpy()
            for rows in (
                simulate(mdp, each, Poisson(5), episodes=episodes, seed=seed) for each in (settings, RandomPolicy())
            )
        )
        assert regret.sum() < 0.15 * at_random.sum()
        assert regret[-100:].sum() < 0.03 * at_random[-100:].sum()


NOT_POSITIVE: list[Any] = [0, -1.0, float("nan"), float("inf"), "1", None, True]
BAD: dict[str, list[Any]] = {
    "bonus_form": ["hoeffdin", None, 1],
    "bonus_scale": [-0.5, float("nan"), float("inf"), "1", None, True],
    "delta": [*NOT_POSITIVE, 1.0, 2],
    "episodes": [0, -3, 1.0, "2", None, True],
    "updating": ["lazily", None, 0],
    "growth": NOT_POSITIVE,
    "ties": ["last", None, True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_a_bad_setting_is_named_with_its_value(name: str, value: Any) -> None:
    with pytest.raises((InvalidInputError, UnknownNameError)) as raised:
        TabularUCBVI(**{name: value})
    assert str(raised.value).startswith(f"{name} must be ")
    assert f"got {value!r}" in str(raised.value)


@pytest.mark.parametrize("settings", [{"episodes": 10**400}, {"delta": 5e-324}, {"bonus_scale": 1e308}], ids=str)
@FORMS
def test_extreme_settings_give_optimism_not_nonsense(settings: dict[str, Any], form: str) -> None:
    mdp = RiverSwim(states=3, horizon=4)
    *_, (_, agent, _, _, _, _) = play(mdp, TabularUCBVI(bonus_form=form, **settings), Constant(0), 10)
    np.testing.assert_array_equal(agent.record.work.values[0], 4.0)


def test_plain_values_and_back() -> None:
    settings = TabularUCBVI(
        bonus_form="bernstein", bonus_scale=0.01, delta=0.2, episodes=50, updating="lazy", growth=2.5, ties="first"
    )
    plain = json.loads(json.dumps(settings.to_dict()))
    assert plain["algorithm"] == "tabular-ucbvi"
    assert TabularUCBVI.from_dict(plain) == settings
    assert TabularUCBVI.from_dict({"algorithm": "tabular-ucbvi"}) == TabularUCBVI()
    with pytest.raises(InvalidInputError, match="tabular-ucbvi has no setting 'ridge'"):
        TabularUCBVI.from_dict({"ridge": 1.0})

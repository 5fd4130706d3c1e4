"""A batch ends when its own feedback has made some determinant grow, and never before."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from naive import NaivePSVI

from belated._kernels.streams import stream
from belated.agents import (
    DelayedLPSVI,
    DelayedPHE,
    DelayedPSVI,
    DelayedUCBVI,
    EpsilonGreedy,
    FixedPolicy,
    Greedy,
    RandomPolicy,
    RareSwitching,
    Settings,
    load_agent,
    save_agent,
)
from belated.agents._multi_batch import MultiBatch, MultiBatchAgent
from belated.delays import Constant, DelayDistribution, FeedbackQueue, Geometric, Lossy, Pareto, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import DamagedFileError, InvalidInputError, UnknownNameError
from belated.runner import simulate
from belated.types import Feedback, TablePolicy, Trajectory

MDP = RandomLinearMDP(states=5, actions=3, dimension=3, horizon=4, seed=2, bernoulli=True)
ONE_PAIR = FiniteMDP(np.ones((1, 1, 1)), [[0.5]], features=np.ones((1, 1, 1)), horizon=2)
INFINITE, MISSING = Pareto(0.5, 5), Lossy(Geometric(10), 0.5)

BASES: list[Settings] = [
    DelayedPSVI(),
    DelayedLPSVI(),
    DelayedLPSVI(sampler="collapsed", warm_start="step"),
    DelayedLPSVI(sampler="preconditioned", warm_start="cold"),
    DelayedUCBVI(),
    DelayedUCBVI(bonus_form="growing"),
    EpsilonGreedy(),
    Greedy(),
]
EACH_BASE = pytest.mark.parametrize("base", BASES, ids=str)


class Play:
    """An agent at play under delays, one episode at each step of the iteration."""

    def __init__(self, mdp: FiniteMDP, agent: MultiBatchAgent, distribution: DelayDistribution, seed: int = 0) -> None:
        self.mdp, self.agent, self.distribution = mdp, agent, distribution
        self.rng, self.world = stream(seed, "agent"), stream(seed, "environment")
        self.delays = distribution.sample(stream(seed, "delay"), 2000)
        self.buffer: FeedbackQueue[Trajectory] = FeedbackQueue()
        self.episode = 0

    def play(self, episodes: int) -> Iterator[tuple[list[Feedback], TablePolicy]]:
        for _ in range(episodes):
            batch = [Feedback(*each) for each in self.buffer.arrived(self.episode)]
            self.agent.learn(batch)
            policy = self.agent.plan(self.rng)
            yield batch, policy
            self.buffer.add(self.episode, int(self.delays[self.episode]), self.mdp.rollout(policy, self.world))
            self.episode += 1


def beginnings(mdp: FiniteMDP, settings: MultiBatch, distribution: DelayDistribution, episodes: int) -> list[int]:
    """Play and return the first episode of each batch."""
    agent = settings.start(mdp.problem)
    return sorted({agent.first for _ in Play(mdp, agent, distribution).play(episodes)})


def trajectories(count: int) -> list[Feedback]:
    explorer, rng = RandomPolicy().start(MDP.problem), stream(0, "explorer")
    return [Feedback(k, MDP.rollout(explorer.plan(rng), rng)) for k in range(count)]


def snapshot(agent: MultiBatchAgent) -> dict[str, npt.NDArray[Any]]:
    return {name: values.copy() for name, values in agent.memory().items()}


def assert_same(agent: MultiBatchAgent, memory: dict[str, npt.NDArray[Any]]) -> None:
    assert set(agent.memory()) == set(memory)
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(values, memory[name], err_msg=name)


@EACH_BASE
def test_with_one_pair_a_batch_ends_when_its_count_has_doubled(base: Settings) -> None:
    """Ω = 1 + n after n arrivals."""
    settings = MultiBatch(base=base)
    assert beginnings(ONE_PAIR, settings, Constant(0), 40) == [0, 1, 3, 7, 15, 31]
    assert beginnings(ONE_PAIR, MultiBatch(base=base, growth=3), Constant(0), 40) == [0, 2, 8, 26]
    # What is played in episode k is known in episode k + 3, unless its batch is over by then.
    assert beginnings(ONE_PAIR, settings, Constant(2), 40) == [0, 3, 7, 13, 23]
    kept = MultiBatch(base=base, drop_stragglers=False)
    assert beginnings(ONE_PAIR, kept, Constant(2), 40) == [0, 3, 5, 9, 17, 33]


def test_the_noise_is_part_of_the_determinant() -> None:
    """Ω = λ + n/σ²: 3, 7, ... is more than doubled by one arrival, then 15 by two more, 31 by four more."""
    settings = MultiBatch(base=DelayedPSVI(noise=0.5, ridge=3.0))
    assert beginnings(ONE_PAIR, settings, Constant(0), 20) == [0, 1, 3, 7, 15]


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("distribution", [Constant(0), Poisson(4), INFINITE, MISSING], ids=str)
@pytest.mark.parametrize("growth", [1.0, 1.4, 2.0])
def test_it_does_what_its_transcription_does(drop: bool, distribution: DelayDistribution, growth: float) -> None:
    """The naive agent rebuilds every Ω from all the trajectories that were learned."""
    naive = NaivePSVI(MDP.features, MDP.horizon, scale=2.0)
    settings = MultiBatch(base=DelayedPSVI(scale=2.0), growth=growth, drop_stragglers=drop)
    agent, other = settings.start(MDP.problem), stream(0, "agent")
    first, new, dropped = 0, 0, 0
    determinants, actions = np.ones(MDP.horizon), np.zeros(0, np.int64)
    for k, (batch, policy) in enumerate(Play(MDP, agent, distribution).play(150)):
        for feedback in batch:
            if feedback.episode < first and drop:
                dropped += 1
                continue
            t, new = feedback.trajectory, new + 1
            naive.observe(-1, -1, t.rows, t.actions, t.rewards)
        now = np.array([np.linalg.det(naive.regression(k, h).precision) for h in range(MDP.horizon)])
        if k == 0 or (new and (now / determinants).max() >= growth):
            first, new, determinants, actions = k, 0, now, naive.plan(k, other)
        np.testing.assert_array_equal(policy.actions, actions, err_msg=f"policy of episode {k}")
        assert agent.first == first
        np.testing.assert_allclose(agent.mark, np.log(determinants), rtol=1e-9, atol=1e-9)
    assert first > 0
    assert (dropped > 0) == (drop and distribution != Constant(0))


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize(("mdp", "growth"), [(MDP, 2.0), (RiverSwim(states=3, horizon=4), 1.3)], ids=str)
def test_batches_are_few(mdp: FiniteMDP, growth: float, drop: bool) -> None:
    episodes, d = 1000, mdp.dimension
    settings = MultiBatch(base=DelayedPSVI(), growth=growth, drop_stragglers=drop)
    largest = (mdp.features**2).sum(axis=2).max()
    bound = 1 + d * mdp.horizon * np.log(1 + episodes * largest / d) / np.log(growth)
    count = len(beginnings(mdp, settings, Poisson(3), episodes))
    assert 5 < count <= bound
    assert count < episodes / 4


@EACH_BASE
def test_without_delay_and_with_growth_one_it_is_the_base(base: Settings) -> None:
    for mdp in (MDP, RiverSwim(states=3, horizon=4)):
        ours = simulate(mdp, MultiBatch(base=base, growth=1), Constant(0), episodes=80, seed=3)
        assert ours.equals(simulate(mdp, base, Constant(0), episodes=80, seed=3))


def test_growth_one_waits_for_feedback_of_the_batch_itself() -> None:
    assert beginnings(MDP, MultiBatch(base=DelayedPSVI(), growth=1), Constant(2), 12) == [0, 3, 6, 9]
    assert beginnings(MDP, MultiBatch(base=DelayedPSVI(), growth=1), Lossy(Constant(2), 1), 12) == [0]


@EACH_BASE
def test_in_the_middle_of_a_run_the_order_of_arrival_does_not_matter(base: Settings) -> None:
    """Of the 25 trajectories the first five have arrived in order; the last of them begins a batch."""
    batch, agents = trajectories(25), []
    rest = batch[5:]
    for order in (rest, rest[::-1], rest[7:] + rest[:7]):
        agent, rng = MultiBatch(base=base, growth=1).start(MDP.problem), stream(1, "agent")
        for k in range(5):
            agent.plan(rng)
            agent.learn(batch[k : k + 1])
        assert agent.first == 4
        for feedback in order:
            agent.learn([feedback])
        assert agent.arrived == 1 + 20
        agents.append((agent, agent.plan(rng).actions))
    for agent, actions in agents[1:]:
        np.testing.assert_array_equal(actions, agents[0][1])
        for name, values in agents[0][0].memory().items():
            np.testing.assert_allclose(agent.memory()[name], values, rtol=1e-8, atol=1e-8, err_msg=name)


def test_within_a_batch_nothing_is_drawn_and_the_policy_stays() -> None:
    agent, rng = MultiBatch(base=DelayedPSVI(), growth=1e6).start(MDP.problem), stream(0, "agent")
    policy = agent.plan(rng)
    before, kept = rng.bit_generator.state, policy.actions.copy()
    agent.learn(trajectories(5))
    for _ in range(3):
        policy.actions[:] = 0  # the caller's own table
        policy = agent.plan(rng)
        np.testing.assert_array_equal(policy.actions, kept)
    assert rng.bit_generator.state == before
    assert (agent.planned, agent.first, agent.arrived) == (4, 0, 5)
    with pytest.raises(InvalidInputError, match=r"rng must be a numpy\.random\.Generator"):
        agent.plan(0)  # type: ignore[arg-type]
    assert agent.planned == 4


@pytest.mark.parametrize("distribution", [INFINITE, MISSING], ids=str)
@pytest.mark.parametrize(
    ("base", "total", "late"),
    [
        (DelayedPSVI(), 0.75, 0.4),
        (DelayedLPSVI(sampler="preconditioned"), 0.75, 0.4),
        (DelayedUCBVI(bonus=3.0), 0.9, 0.7),
    ],
    ids=str,
)
def test_it_learns_when_the_mean_delay_is_infinite_or_feedback_is_lost(
    base: Settings, total: float, late: float, distribution: DelayDistribution
) -> None:
    """`total` and `late` are shares of a random policy's regret, of all episodes and of the last 300."""
    river = RiverSwim(states=4, horizon=10)
    gaps = {}
    for name, algorithm in (("random", RandomPolicy()), ("ours", MultiBatch(base=base))):
        runs = [simulate(river, algorithm, distribution, episodes=1500, seed=seed) for seed in range(4)]
        gaps[name] = np.mean([(rows["optimal"] - rows["value"]).to_numpy() for rows in runs], axis=0)
    assert gaps["ours"].sum() < total * gaps["random"].sum()
    assert gaps["ours"][-300:].mean() < late * gaps["random"][-300:].mean()


@EACH_BASE
@pytest.mark.parametrize("episodes", [0, 31])
def test_going_on_is_never_having_stopped(base: Settings, episodes: int, tmp_path: Path) -> None:
    settings = MultiBatch(base=base, growth=1.5)
    whole, broken = (Play(MDP, settings.start(MDP.problem), Poisson(3)) for _ in range(2))
    for play in (whole, broken):
        assert len(list(play.play(episodes))) == episodes
    save_agent(tmp_path / "agent.npz", broken.agent, broken.rng)
    broken.agent, rng = load_agent(tmp_path / "agent.npz", classes=[MultiBatch])
    assert rng is not None
    assert broken.agent.settings == settings
    assert_same(broken.agent, snapshot(whole.agent))
    broken.rng = rng
    began = whole.agent.first
    for (_, ours), (_, theirs) in zip(whole.play(60), broken.play(60), strict=True):
        np.testing.assert_array_equal(ours.actions, theirs.actions)
    assert whole.agent.first > began
    assert rng.bit_generator.state == whole.rng.bit_generator.state


def test_settings_and_agents_can_be_pickled() -> None:
    settings = MultiBatch(base=DelayedLPSVI(sampler="collapsed"), growth=1.5)
    play = Play(MDP, settings.start(MDP.problem), Poisson(3))
    assert len(list(play.play(20))) == 20
    assert pickle.loads(pickle.dumps(settings)) == settings
    copy = pickle.loads(pickle.dumps(play.agent))
    assert_same(copy, snapshot(play.agent))
    assert repr(copy) == repr(play.agent)
    assert "d=3, H=4" in repr(copy)


@EACH_BASE
def test_settings_survive_a_round_trip_through_plain_values(base: Settings) -> None:
    settings = MultiBatch(base=base, growth=np.float64(1.5), drop_stragglers=False)
    plain = json.loads(json.dumps(settings.to_dict()))
    assert plain == {
        "algorithm": "multi-batch",
        "base": json.loads(json.dumps(base.to_dict())),
        "growth": 1.5,
        "drop_stragglers": False,
    }
    assert MultiBatch.from_dict(plain) == settings
    assert MultiBatch.from_dict({"base": base.to_dict()}) == MultiBatch(base=base)
    assert hash(MultiBatch.from_dict(plain)) == hash(settings)


def test_plain_values_that_describe_nothing_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="multi-batch needs the setting 'base'"):
        MultiBatch.from_dict({"growth": 2.0})
    with pytest.raises(InvalidInputError, match="multi-batch has no setting 'grwth'"):
        MultiBatch.from_dict({"base": {"algorithm": "psvi"}, "grwth": 2.0})
    with pytest.raises(InvalidInputError, match="psvi has no setting 'bonus'"):
        MultiBatch.from_dict({"base": {"algorithm": "psvi", "bonus": 1.0}})
    with pytest.raises(InvalidInputError, match=r"base must be the settings .*, got 'psvi'"):
        MultiBatch.from_dict({"base": "psvi"})
    with pytest.raises(UnknownNameError, match=r"algorithm must be one of 'psvi', .*; did you mean 'psvi'"):
        MultiBatch.from_dict({"base": {"algorithm": "pvsi"}})
    with pytest.raises(InvalidInputError, match="a mapping with the field 'algorithm'"):
        MultiBatch.from_dict({"base": {}})
    with pytest.raises(InvalidInputError, match="base must be the settings of a linear algorithm"):
        MultiBatch.from_dict({"base": MultiBatch(base=Greedy()).to_dict()})


@pytest.mark.parametrize(
    "base",
    [None, "psvi", DelayedPSVI, {"algorithm": "psvi"}, MultiBatch(base=Greedy()), RareSwitching(base=Greedy())],
)
def test_a_base_that_is_no_settings_of_an_algorithm_is_refused(base: Any) -> None:
    with pytest.raises(InvalidInputError, match="base must be the settings of a linear algorithm"):
        MultiBatch(base=base)


@pytest.mark.parametrize(
    "base", [RandomPolicy(), DelayedPHE(), FixedPolicy(actions=np.zeros((4, 5), np.int64))], ids=str
)
def test_a_base_without_a_regression_is_refused(base: Settings) -> None:
    with pytest.raises(InvalidInputError, match="base must be an algorithm that keeps Ω"):
        MultiBatch(base=base).start(MDP.problem)


@pytest.mark.parametrize("growth", [0.999, 0, -2.0, float("nan"), float("inf"), "2", None, True])
def test_a_growth_below_one_is_refused(growth: Any) -> None:
    with pytest.raises(InvalidInputError, match="growth must be a finite number >= 1"):
        MultiBatch(base=DelayedPSVI(), growth=growth)


@pytest.mark.parametrize("drop", [None, 0, 1, "yes"])
def test_whether_stragglers_are_dropped_is_true_or_false(drop: Any) -> None:
    with pytest.raises(InvalidInputError, match="drop_stragglers must be True or False"):
        MultiBatch(base=DelayedPSVI(), drop_stragglers=drop)


def test_bad_feedback_changes_nothing_even_if_it_would_be_dropped() -> None:
    agent, good, rng = MultiBatch(base=DelayedPSVI(), growth=1).start(MDP.problem), trajectories(4), stream(0, "agent")
    for k in range(3):
        agent.plan(rng)
        agent.learn(good[k : k + 1])
    assert agent.first == 2
    before = snapshot(agent)
    t = good[3].trajectory
    broken = Trajectory(t.rows, t.actions, np.full_like(t.rewards, np.nan))
    for episode in (0, 2):
        with pytest.raises(InvalidInputError, match=r"trajectory\.rewards must be finite"):
            agent.learn([good[3], Feedback(episode, broken)])
    for wrong in (-1, 1.0, None, "0"):
        with pytest.raises(InvalidInputError, match=r"feedback\.episode must be an integer >= 0"):
            agent.learn([good[3], Feedback(wrong, t)])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="the batch must be"):
        agent.learn([good[3], t])  # type: ignore[list-item]
    agent.learn([])
    assert_same(agent, before)


def test_restore_refuses_what_does_not_fit_and_changes_nothing(tmp_path: Path) -> None:
    agent = MultiBatch(base=DelayedPSVI()).start(MDP.problem)
    assert len(list(Play(MDP, agent, Constant(0)).play(10))) == 10
    before = snapshot(agent)
    factor = before["base.factor"]
    refused: list[tuple[str, dict[str, Any]]] = [
        ("memory must hold the arrays", {"other": np.zeros(1)}),
        (r"memory\['mark'\] must be float64 of shape \(4,\)", {"mark": np.zeros(3)}),
        (r"memory\['mark'\] must be finite", {"mark": np.full(4, np.nan)}),
        (r"memory\['policy'\] must be int64 of shape \(4, 5\)", {"policy": np.zeros((5, 4), np.int64)}),
        (r"memory\['policy'\] must hold integers in 0..2", {"policy": np.full((4, 5), 3)}),
        (r"memory\['counts'\] must hold counts", {"counts": np.array([9, -1, 0])}),
        (r"memory\['counts'\] must be \[planned, first, arrived\]", {"counts": np.array([9, 9, 0])}),
        (r"memory\['factor'\] must be float64 of shape", {"base.factor": factor[1:]}),
        (r"memory\['factor'\] must be finite", {"base.factor": factor * np.nan}),
    ]
    for message, changed in refused:
        with pytest.raises(InvalidInputError, match=message):
            agent.restore({**before, **changed})
        assert_same(agent, before)
    with pytest.raises(InvalidInputError, match="memory must hold the arrays"):
        agent.restore({})
    agent.mark = np.zeros(3)
    save_agent(tmp_path / "agent.npz", agent)
    with pytest.raises(DamagedFileError, match=r"memory\['mark'\] must be float64 of shape"):
        load_agent(tmp_path / "agent.npz", classes=[MultiBatch])

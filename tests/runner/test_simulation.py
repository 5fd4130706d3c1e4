"""One run: the compiled loop against the Python loop, the rows against first principles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_python import InPython
from late_runs import AGENTS as LATE_AGENTS
from late_runs import DELAYS as LATE_DELAYS
from late_runs import WORLDS
from polars.testing import assert_frame_equal

import belated
from belated._kernels.streams import stream
from belated.delays import OutcomeDelays
from belated.runner._experiment import Run
from belated.runner._simulation import BLOCK, Simulation
from belated.types import Algorithm, Feedback, Problem, TablePolicy, Trajectory

AGENTS = {
    "psvi": belated.DelayedPSVI(scale=2.0, noise=0.3),
    "lpsvi": belated.DelayedLPSVI(steps=5, warm_start="step"),
    "lpsvi-collapsed": belated.DelayedLPSVI(sampler="collapsed"),
    "lpsvi-preconditioned": belated.DelayedLPSVI(sampler="preconditioned"),
    "ucbvi": belated.DelayedUCBVI(bonus_form="growing"),
    "epsilon-greedy": belated.EpsilonGreedy(epsilon=0.2),
    "greedy": belated.Greedy(),
    "random": belated.RandomPolicy(),
}
DELAYS = {
    "none": belated.Constant(0),
    "poisson": belated.Poisson(6),
    "lossy": belated.Lossy(belated.Geometric(3), 0.3),
    "pareto": belated.Pareto(1.0, 5.0),
    "bursts": belated.Bursts(belated.Constant(0), belated.Lossy(belated.Poisson(40), 0.1), begin=0.05, end=0.1),
    "outage": belated.Outages([[10, 280]], belated.Poisson(2)),  # hundreds arrive together
}


@pytest.mark.parametrize("delay", DELAYS.values(), ids=DELAYS.keys())
@pytest.mark.parametrize("algorithm", AGENTS.values(), ids=AGENTS.keys())
def test_both_loops_give_the_same_rows_bit_for_bit(algorithm: Algorithm, delay: belated.DelayDistribution) -> None:
    world = belated.RandomLinearMDP(states=4, actions=3, dimension=3, horizon=4, bernoulli=True)
    compiled = belated.simulate(world, algorithm, delay, episodes=300, seed=3)
    in_python = belated.simulate(world, InPython(algorithm), delay, episodes=300, seed=3)
    assert_frame_equal(compiled, in_python, check_exact=True)


def test_arrivals_follow_the_convention() -> None:
    """Feedback of episode k is usable when planning k' iff k + delay <= k' - 1."""
    delays = [0, 3, 0, 1, 0, 0]
    rows = belated.simulate(belated.RiverSwim(), belated.DelayedPSVI(), belated.Fixed(delays), episodes=6, seed=0)
    assert rows["delay"].to_list() == delays
    expected = [sum(k + delay == planned - 1 for k, delay in enumerate(delays)) for planned in range(6)]
    assert rows["arrived"].to_list() == expected == [0, 1, 0, 1, 0, 3]


def test_missing_feedback_is_null_and_never_arrives() -> None:
    distribution = belated.Lossy(belated.Constant(0), 0.5)
    rows = belated.simulate(belated.RiverSwim(), belated.DelayedPSVI(), distribution, episodes=200, seed=0)
    lost = rows["delay"].is_null()
    assert 50 < lost.sum() < 150
    assert rows["arrived"][1:].to_list() == (~lost[:-1]).cast(pl.Int64).to_list()


def test_values_are_exact_and_the_oracle_has_no_regret() -> None:
    world = belated.RandomLinearMDP(bernoulli=True, seed=4)
    oracle = belated.FixedPolicy(actions=world.optimal_policy().actions)
    rows = belated.simulate(world, oracle, belated.Constant(0), episodes=4000, seed=1)
    assert (rows["value"] == rows["optimal"]).all()
    error = rows["sampled_return"] - rows["value"]
    assert abs(error.mean()) < 4 * error.std() / 4000**0.5  # type: ignore[arg-type, operator]


def test_swapping_the_agent_leaves_delays_and_environment_draws_as_they_were() -> None:
    """Common random numbers: an environment whose actions do nothing shows the same episodes to everyone."""
    rng = np.random.default_rng(0)
    blind = np.repeat(rng.dirichlet(np.ones(4), size=(4, 1)), 3, axis=1)
    world = belated.FiniteMDP(
        blind, np.repeat(rng.random((4, 1)), 3, axis=1), start=[0.1, 0.2, 0.3, 0.4], horizon=5, bernoulli=True
    )
    rows = [
        belated.simulate(world, algorithm, belated.Poisson(4), episodes=100, seed=9)
        for algorithm in (belated.RandomPolicy(), belated.DelayedPSVI(), belated.DelayedLPSVI())
    ]
    for other in rows[1:]:
        assert_frame_equal(rows[0], other, check_exact=True)


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    arguments: tuple[Any, ...] = (belated.RiverSwim(), belated.DelayedPSVI(), belated.Poisson(5))
    short = belated.simulate(*arguments, episodes=300, seed=2)
    long = belated.simulate(*arguments, episodes=700, seed=2)
    assert_frame_equal(short, long[:300], check_exact=True)


def test_watch_hears_of_every_episode_once() -> None:
    heard: list[int] = []
    belated.simulate(
        belated.RiverSwim(), belated.RandomPolicy(), belated.Constant(0), episodes=600, seed=0, watch=heard.append
    )
    assert sum(heard) == 600
    assert len(heard) > 1


def test_the_post_holds_what_is_in_flight_at_once_only() -> None:
    run = Simulation(Run(belated.RiverSwim(), belated.RandomPolicy(), belated.Constant(7), episodes=5000, seed=0))
    while run.played < run.episodes:
        run.advance()
        assert run.array_queue.size[0] <= 8
    assert len(run.array_queue.heap) == 2 * BLOCK
    slow = Simulation(Run(belated.RiverSwim(), belated.RandomPolicy(), belated.Constant(2000), episodes=5000, seed=0))
    while slow.played < slow.episodes:
        slow.advance()
    assert len(slow.array_queue.heap) < 5000


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    mean=st.floats(0.1, 20),
    name=st.sampled_from(["psvi", "lpsvi-preconditioned", "ucbvi", "random"]),
)
def test_regret_is_never_negative_beyond_rounding(seed: int, mean: float, name: str) -> None:
    world = belated.RandomLinearMDP(states=5, actions=3, dimension=4, horizon=4, seed=seed)
    rows = belated.simulate(world, AGENTS[name], belated.Poisson(mean), episodes=40, seed=seed)
    assert (rows["optimal"] - rows["value"]).min() >= -1e-12  # type: ignore[operator]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (lambda: None, r"plan must return a policy with act\(step, state\), got NoneType"),
        (lambda: TablePolicy(np.zeros((2, 2), np.int64)), "must have shape"),
        (lambda: TablePolicy(np.full((20, 5), 2)), "must hold integers in 0..1, got 2"),
    ],
)
def test_a_foreign_agent_that_plans_nonsense_is_refused(plan: Any, message: str) -> None:
    class Foreign:
        def start(self, problem: Problem) -> Any:
            return self

        def plan(self, rng: np.random.Generator) -> Any:
            return plan()

        def learn(self, batch: Sequence[Feedback]) -> None: ...

    with pytest.raises(belated.InvalidInputError, match=message):
        belated.simulate(belated.RiverSwim(), Foreign(), belated.Constant(0), episodes=2, seed=0)


def test_the_delay_stream_is_the_distribution_itself() -> None:
    rows = belated.simulate(belated.RiverSwim(), belated.RandomPolicy(), belated.Poisson(9), episodes=50, seed=5)
    assert rows["delay"].to_list() == belated.Poisson(9).sample(stream(5, "delay"), 50).tolist()


def test_what_an_outage_held_back_arrives_together_across_blocks() -> None:
    distribution = belated.Outages([[300, 2 * BLOCK + 1]], belated.Constant(0))
    run = Simulation(Run(belated.RiverSwim(), belated.DelayedPSVI(), distribution, episodes=3 * BLOCK, seed=0))
    while run.played < run.episodes:
        run.advance()
    arrived = run.rows()["arrived"].to_list()
    assert arrived[:300] == [0] + [1] * 299
    assert arrived[300 : 2 * BLOCK + 1] == [0] * (2 * BLOCK + 1 - 300)
    assert arrived[2 * BLOCK + 1] == 2 * BLOCK + 2 - 300
    assert sum(arrived) == 3 * BLOCK - 1


@dataclass(frozen=True)
class Odd(belated.DelayDistribution):
    """Draws whatever it is given."""

    answer: Any

    label = "odd"

    def draw(self, rng: np.random.Generator, count: int, first: int, state: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(3, np.int64), "what odd draws must be a pair of delays and state"),
        ((np.zeros(3), None), "the delays that odd draws must be an array of integers"),
        ((np.array([0, -1, 0]), None), r"the delays that odd draws must hold integers .*got -1"),
        ((np.zeros((3, 1), np.int64), None), r"the delays that odd draws must have shape \(3,\), got \(3, 1\)"),
        ((np.zeros(3, np.int64), np.zeros(2)), "the state of odd must be plain values that JSON can hold"),
    ],
)
def test_a_distribution_of_ones_own_that_draws_nonsense_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(belated.InvalidInputError, match=message):
        belated.simulate(belated.RiverSwim(), belated.RandomPolicy(), Odd(answer), episodes=3, seed=0)


# Bandits, and delays that depend on the outcome.


@pytest.mark.parametrize("distribution", LATE_DELAYS)
@pytest.mark.parametrize("world", WORLDS)
def test_both_loops_give_the_same_rows_whatever_the_outcome(world: str, distribution: str) -> None:
    for algorithm in LATE_AGENTS.values():
        compiled = belated.simulate(WORLDS[world], algorithm, LATE_DELAYS[distribution], episodes=300, seed=3)
        in_python = belated.simulate(
            WORLDS[world], InPython(algorithm), LATE_DELAYS[distribution], episodes=300, seed=3
        )
        assert_frame_equal(compiled, in_python, check_exact=True)


def test_the_delay_follows_the_reward() -> None:
    distribution = LATE_DELAYS["by-reward"]
    rows = belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), distribution, episodes=2000, seed=1)
    drawn = distribution.sample(stream(1, "delay"), 2000)
    earned = rows["sampled_return"].to_numpy() > 0
    assert 200 < earned.sum() < 1800
    assert rows["delay"].is_null().to_list() == (~earned).tolist()
    assert rows.filter(pl.Series(earned))["delay"].to_list() == drawn[earned, 1].tolist()


@pytest.mark.parametrize("action", [0, 1, 2])
def test_the_delay_follows_the_first_action(action: int) -> None:
    world, distribution = WORLDS["mdp"], LATE_DELAYS["by-action"]
    table = np.full((3, 4), (action + 1) % 3)
    table[0] = action
    rows = belated.simulate(world, belated.FixedPolicy(actions=table), distribution, episodes=200, seed=2)
    drawn = distribution.sample(stream(2, "delay"), 200)[:, action]
    assert rows["delay"].fill_null(np.iinfo(np.int64).max).to_list() == drawn.tolist()


def test_arrivals_follow_the_delays_that_the_outcomes_chose() -> None:
    for distribution in ("by-action", "by-reward"):
        rows = belated.simulate(
            WORLDS["conversion"], belated.RandomPolicy(), LATE_DELAYS[distribution], episodes=600, seed=4
        )
        due = rows.select(pl.col("episode") + pl.col("delay") + 1).to_series().drop_nulls()
        expected = np.bincount(due.to_numpy(), minlength=600)[:600]
        assert rows["arrived"].to_list() == expected.tolist()


def test_contexts_in_turn_and_regret_from_first_principles() -> None:
    world = WORLDS["changing"]
    rows = belated.simulate(world, belated.RandomPolicy(), belated.Constant(0), episodes=40, seed=0)
    assert rows["start"].to_list() == [k % 5 for k in range(40)]
    best = world.rewards[0].max(axis=1)[np.arange(40) % 5]
    np.testing.assert_array_equal(rows["optimal"], best)
    np.testing.assert_allclose(rows["regret"], np.cumsum(best - rows["value"].to_numpy()), rtol=1e-13)
    noise = rows["sampled_return"].to_numpy() - rows["value"].to_numpy()
    assert 0.1 < noise.std() < 0.3


class LateOnRoundReturns(OutcomeDelays):
    """A distribution of one's own, of which compiled code knows nothing."""

    label = "late-on-round-returns"
    distributions_by_outcome = (belated.Constant(0), belated.Constant(2), belated.Constant(5))

    def outcome(self, trajectory: Trajectory) -> int:
        return int(trajectory.rewards.sum() // 1) % 3

    def to_dict(self) -> dict[str, Any]:
        return {"distribution": self.label}


def test_a_distribution_of_ones_own_runs() -> None:
    run = Simulation(Run(WORLDS["mdp"], belated.DelayedPSVI(), LateOnRoundReturns(), episodes=300, seed=0))
    assert not run.compiled
    assert run.can_be_saved
    while run.played < run.episodes:
        run.advance()
    rows = run.rows()
    assert set(rows["sampled_return"].to_list()) == {0.0, 1.0, 2.0, 3.0}
    assert rows["delay"].to_list() == [(0, 2, 5, 0)[int(earned)] for earned in rows["sampled_return"]]
    mine: Any = LateOnRoundReturns()
    results = belated.run(
        WORLDS["mdp"], {"a": belated.DelayedPSVI()}, mine, episodes=300, seeds=1, jobs=1, progress=False
    )
    assert_frame_equal(results.frame.select(rows.columns), rows, check_exact=True)


def test_a_subclass_that_decides_otherwise_is_asked() -> None:
    class Reversed(belated.DelayByReward):
        def outcome(self, trajectory: Trajectory) -> int:
            return 1 - super().outcome(trajectory)

    distribution = Reversed(zero=belated.Constant(1), positive=belated.Constant(4))
    rows = belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), distribution, episodes=100, seed=0)
    assert rows["delay"].to_list() == [1 if earned else 4 for earned in rows["sampled_return"]]


def test_a_distribution_for_each_action_is_needed() -> None:
    distribution = belated.DelayByAction([belated.Constant(0)] * 4)
    with pytest.raises(belated.InvalidInputError, match=r"delay\.delays must be one for each of 3 actions, got 4"):
        belated.simulate(WORLDS["conversion"], belated.RandomPolicy(), distribution, episodes=3, seed=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": belated.RandomPolicy()}, "environment must be of type FiniteMDP"),
        ({"algorithm": belated.RiverSwim()}, r"algorithm must be an algorithm with a method start\(problem\)"),
        ({"algorithm": belated.Greedy}, r"algorithm must be an algorithm with a method start\(problem\)"),
        ({"delay": 3}, "delay must be of type DelayDistribution, got 3"),
        ({"delay": belated.Fixed([1, 2])}, "delay must have a fixed delay for each of 5 episodes, got 2 of them"),
        ({"episodes": 10**13}, "episodes must be at most 1000000000 with record_every=1"),
        ({"episodes": 10**400}, "episodes must be an integer"),
        ({"seed": -1}, "seed must be an integer >= 0"),
        ({"checkpoint_seconds": -1}, "checkpoint_seconds must be a finite number >= 0"),
    ],
)
def test_what_is_no_run_is_refused(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "environment": belated.RiverSwim(),
        "algorithm": belated.RandomPolicy(),
        "delay": belated.Constant(0),
        "episodes": 5,
        "seed": 0,
        **changes,
    }
    with pytest.raises(belated.InvalidInputError, match=message):
        belated.simulate(**given)

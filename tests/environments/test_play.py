"""One episode of a policy in any environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from odd_worlds import Always, Countdown, Odd

from belated import FiniteMDP, GymEnvironment, InvalidInputError, LinearBandit, RandomLinearMDP, RiverSwim, TablePolicy
from belated._kernels.streams import stream
from belated.environments._play import play
from belated.types import Environment, SparseVector

WORLDS: list[FiniteMDP] = [
    RiverSwim(states=4, horizon=6),
    RandomLinearMDP(states=5, actions=3, dimension=3, horizon=4, bernoulli=True),
    LinearBandit(dimension=3, actions=3, sets="random", contexts=6, reward="conversion"),
]


@pytest.mark.parametrize("mdp", WORLDS, ids=lambda mdp: mdp.label)
def test_a_table_draws_as_rollout_does_in_a_run(mdp: FiniteMDP) -> None:
    """Episode k by itself is what the k-th of a run's rollouts is: the same numbers of the same stream."""
    assert isinstance(mdp, Environment)
    choices, dynamics = np.random.default_rng(0), stream(3, "environment")
    policies = [TablePolicy(choices.integers(mdp.actions, size=(mdp.horizon, mdp.states))) for _ in range(12)]
    run = [mdp.rollout(policy, dynamics, episode=k) for k, policy in enumerate(policies)]
    for k in (11, 0, 5):  # in any order
        alone = play(mdp, policies[k], seed=3, episode=k)
        np.testing.assert_array_equal(alone.rows, run[k].rows)
        np.testing.assert_array_equal(alone.actions, run[k].actions)
        np.testing.assert_array_equal(alone.rewards, run[k].rewards)
        assert not alone.terminated
        alone.check(mdp.problem)


def test_where_noise_takes_any_number_of_draws_an_episode_is_still_its_own() -> None:
    """Normal noise: the run's stream cannot be entered in the middle, so each episode has a stream of its own."""
    bandit = LinearBandit(dimension=3, actions=3, sets="random", contexts=6)
    assert bandit.draws is None
    first = {k: play(bandit, Always(1), seed=3, episode=k) for k in (0, 7, 2)}
    for k in (2, 7, 0):
        again = play(bandit, Always(1), seed=3, episode=k)
        assert (again.rows.tolist(), again.rewards.tolist()) == (first[k].rows.tolist(), first[k].rewards.tolist())
    assert len({each.rewards[0] for each in first.values()}) == 3


def test_steps_are_counted_and_truncation_is_said() -> None:
    river = RiverSwim(states=4, horizon=3)
    state = river.reset(seed=0, episode=0)
    assert river.encode(state) == state
    steps = [river.step(1) for _ in range(3)]
    assert [step.truncated for step in steps] == [False, False, True]
    assert not any(step.terminated for step in steps)
    with pytest.raises(InvalidInputError, match="at most 3 times per episode"):
        river.step(0)
    with pytest.raises(InvalidInputError, match="action must be an integer"):
        river.reset(seed=0, episode=0)
        river.step(2)


@pytest.mark.parametrize(("how", "terminated"), [("terminated", True), ("truncated", False)])
def test_an_episode_ends_where_the_environment_ends_it(how: str, terminated: bool) -> None:
    played = play(GymEnvironment(Countdown, how=how, horizon=10), Always(1), seed=0, episode=0)
    assert played.actions.tolist() == [1, 1, 1]
    assert played.rewards.tolist() == [1.0, 1.0, 1.0]
    assert [int(state.indices[0]) for state in played.states if isinstance(state, SparseVector)] == [3, 2, 1, 0]
    assert played.terminated == terminated


def test_the_policy_is_told_the_step_and_the_state() -> None:
    asked: list[tuple[int, Any]] = []

    class Curious:
        def act(self, step: int, state: Any) -> int:
            asked.append((step, int(state.indices[0])))
            return step % 2

    played = play(GymEnvironment(Odd, horizon=4), Curious(), seed=1, episode=2)
    assert played.actions.tolist() == [0, 1, 0, 1]
    seen = [int(state.indices[0]) for state in played.states if isinstance(state, SparseVector)]
    assert asked == list(enumerate(seen[:-1]))


@pytest.mark.parametrize("action", [-1, 2])
def test_an_action_that_does_not_exist_is_refused(action: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"^the policy's action must be an integer in 0\.\.1, got {action}$"):
        play(RiverSwim(), Always(action), seed=0, episode=0)

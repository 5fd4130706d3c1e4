import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from belated._kernels.streams import stream
from belated.environments import FiniteMDP, RandomLinearMDP, RiverSwim
from belated.errors import InvalidInputError
from belated.types import TablePolicy

SWAP = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
MEANS = np.array([[0.0, 0.25], [1.0, 0.5]])


def random_policy(mdp: FiniteMDP, seed: int) -> TablePolicy:
    return TablePolicy(stream(seed, "policy").integers(mdp.actions, size=(mdp.horizon, mdp.states)))


@pytest.mark.parametrize("seed", range(5))
def test_optimum_is_the_best_of_all_deterministic_policies(seed: int) -> None:
    mdp = RandomLinearMDP(states=2, actions=2, dimension=2, horizon=3, seed=seed)
    tables = itertools.product([0, 1], repeat=6)
    values = {table: mdp.value(TablePolicy(np.array(table).reshape(3, 2))) for table in tables}
    assert mdp.optimal_value == pytest.approx(max(values.values()), abs=1e-14)
    assert mdp.value(mdp.optimal_policy()) == pytest.approx(mdp.optimal_value, abs=1e-14)


def test_values_start_average_and_last_row() -> None:
    mdp = FiniteMDP(SWAP, MEANS, start=[0.25, 0.75], horizon=2)
    stay = TablePolicy(np.zeros((2, 2), dtype=np.int64))
    assert mdp.values(stay).tolist() == [[0.0, 2.0], [0.0, 1.0], [0.0, 0.0]]
    assert mdp.value(stay) == 1.5
    assert mdp.optimal_values().tolist() == [[1.25, 2.0], [0.25, 1.0], [0.0, 0.0]]
    assert mdp.optimal_value == 0.25 * 1.25 + 0.75 * 2.0


def test_discounted_values_are_those_of_a_backward_induction() -> None:
    rng = np.random.default_rng(0)
    transitions, rewards = rng.dirichlet(np.ones(3), size=(4, 3, 2)), rng.random((4, 3, 2))
    mdp = FiniteMDP(transitions, rewards, discount=0.7)
    best, values = np.zeros(3), np.zeros(3)
    policy = TablePolicy(rng.integers(2, size=(4, 3)))
    for h in range(3, -1, -1):
        best = (rewards[h] + 0.7 * transitions[h] @ best).max(axis=1)
        values = (rewards[h] + 0.7 * transitions[h] @ values)[np.arange(3), policy.actions[h]]
        np.testing.assert_allclose(mdp.optimal_values()[h], best)
        np.testing.assert_allclose(mdp.values(policy)[h], values)
    assert (mdp.discount, mdp.problem.discount, FiniteMDP(transitions, rewards).discount) == (0.7, 0.7, 1.0)
    assert mdp.describe() != FiniteMDP(transitions, rewards).describe()


@pytest.mark.parametrize("bernoulli", [False, True])
def test_mean_return_of_rollouts_matches_the_exact_value(bernoulli: bool) -> None:
    mdp = RandomLinearMDP(seed=2, bernoulli=bernoulli)
    policy, rng = random_policy(mdp, 0), stream(1, "environment")
    returns = np.array([mdp.rollout(policy, rng).rewards.sum() for _ in range(4000)])
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    assert 0 < error < 0.05
    assert abs(returns.mean() - mdp.value(policy)) < 4 * error


def test_bernoulli_rewards_are_zeros_and_ones() -> None:
    mdp = FiniteMDP(SWAP, MEANS, horizon=50, bernoulli=True)
    rewards = mdp.rollout(TablePolicy(np.ones((50, 2), dtype=np.int64)), stream(0, "environment")).rewards
    assert set(rewards.tolist()) == {0.0, 1.0}


def test_trajectories_fit_the_problem() -> None:
    mdp = RiverSwim()
    policy = random_policy(mdp, 4)
    trajectory = mdp.rollout(policy, stream(0, "environment")).check(mdp.problem)
    np.testing.assert_array_equal(trajectory.actions, policy.actions[np.arange(20), trajectory.rows[:-1]])


def test_the_step_matters_when_rewards_depend_on_it() -> None:
    mdp = FiniteMDP(np.ones((1, 2, 1)), [[[0.0, 1.0]], [[0.5, 0.0]]])
    assert mdp.optimal_policy().actions.tolist() == [[1], [0]]
    assert mdp.optimal_value == 1.5


def arrays_of(mdp: FiniteMDP) -> list[np.ndarray[Any, Any]]:
    named = [mdp.transitions, mdp.rewards, mdp.features, mdp.start, mdp.optimal_values()]
    tables = [table for table in mdp.world if isinstance(table, np.ndarray)]
    return [*named, mdp.optimal_policy().actions, mdp.problem.features, *tables]


@pytest.mark.parametrize("mdp", [RiverSwim(), RandomLinearMDP()], ids=lambda mdp: mdp.label)
def test_arrays_cannot_be_written(mdp: FiniteMDP) -> None:
    arrays = arrays_of(mdp)
    assert len(arrays) == 12
    for table in arrays:
        with pytest.raises(ValueError, match="read-only"):
            table[...] = 0


def test_arrays_of_the_caller_are_copied() -> None:
    distribution, means = SWAP.copy(), MEANS.copy()
    mdp = FiniteMDP(distribution, means, horizon=2)
    distribution[:], means[:] = 0, 0
    np.testing.assert_array_equal(mdp.transitions[0], SWAP)
    np.testing.assert_array_equal(mdp.rewards[0], MEANS)


@pytest.mark.parametrize("copied", [lambda mdp: pickle.loads(pickle.dumps(mdp)), copy.deepcopy])
def test_copies_are_equal_and_still_read_only(copied: Any) -> None:
    mdp = RandomLinearMDP(seed=1)
    mdp.optimal_values()
    other = copied(mdp)
    assert repr(other) == repr(mdp)
    for mine, theirs in zip(arrays_of(mdp), arrays_of(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert not theirs.flags.writeable


def test_world_is_built_once() -> None:
    mdp = RiverSwim()
    assert mdp.world is mdp.world


def test_linearity_finds_what_the_features_cannot_express() -> None:
    features = np.ones((2, 2, 1))
    assert max(FiniteMDP(SWAP, MEANS, horizon=2).linearity()) < 1e-12
    same = FiniteMDP(np.full((2, 2, 2), 0.5), MEANS, features=features, horizon=2).linearity()
    assert same.reward_error == pytest.approx(1.0 - MEANS.mean())
    assert same.transition_error < 1e-15
    assert FiniteMDP(SWAP, MEANS * 0, features=features, horizon=2).linearity()[:2] == pytest.approx((0.0, 0.5))


def test_linearity_looks_at_every_step() -> None:
    late = np.stack([MEANS * 0, MEANS * 0, MEANS])
    error = FiniteMDP(SWAP, late, features=np.ones((2, 2, 1))).linearity().reward_error
    assert error == pytest.approx(1.0 - MEANS.mean())


def test_the_name_is_public() -> None:
    assert FiniteMDP(SWAP, MEANS, horizon=2, name="my swap").name == "my swap"
    assert RiverSwim().name == "riverswim-5"


def test_normalised_changes_the_features_only() -> None:
    mdp = FiniteMDP(SWAP, MEANS, features=[[[3, 4], [1, 0]], [[0, 2], [0, 0]]], start=[0.5, 0.5], horizon=3)
    unit = mdp.normalised()
    np.testing.assert_allclose(unit.features * 5, mdp.features)
    assert np.linalg.norm(unit.features, axis=-1).max() == 1.0
    np.testing.assert_array_equal(unit.optimal_values(), mdp.optimal_values())
    assert unit.world.transitions.shape[0] == 1
    assert (unit.start.tolist(), unit.label) == ([0.5, 0.5], "finite-normalised")


def test_repr_mentions_bernoulli_only_when_it_holds() -> None:
    assert "bernoulli" not in repr(FiniteMDP(SWAP, MEANS, horizon=1))
    assert "bernoulli=True" in repr(FiniteMDP(SWAP, MEANS, horizon=1, bernoulli=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bernoulli": 1}, "bernoulli must be True or False, got 1"),
        ({"name": ""}, "name must be a non-empty string, got ''"),
    ],
)
def test_bad_settings_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        FiniteMDP(SWAP, MEANS, horizon=3, **change)


def test_bad_policies_and_generators_are_refused() -> None:
    mdp = FiniteMDP(SWAP, MEANS, horizon=3)
    wrong: list[tuple[Any, str]] = [
        (np.zeros((3, 2), dtype=np.int64), r"policy must be a belated.types.TablePolicy"),
        (TablePolicy(np.zeros((2, 2), dtype=np.int64)), r"policy.actions must have shape \(3, 2\), got \(2, 2\)"),
        (TablePolicy(np.full((3, 2), 2)), r"policy.actions must hold integers in 0..1, got 2"),
    ]
    for policy, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            mdp.value(policy)
        with pytest.raises(InvalidInputError, match=message):
            mdp.rollout(policy, stream(0, "environment"))
    with pytest.raises(InvalidInputError, match=r"rng must be a numpy.random.Generator, got 7"):
        mdp.rollout(mdp.optimal_policy(), 7)  # type: ignore[arg-type]


def test_zero_features_cannot_be_normalised() -> None:
    with pytest.raises(InvalidInputError, match="features must not all be zero"):
        FiniteMDP(SWAP, MEANS, features=np.zeros((2, 2, 1)), horizon=1).normalised()


def test_arrays_have_no_plain_specification() -> None:
    with pytest.raises(InvalidInputError, match="no plain specification, got FiniteMDP"):
        FiniteMDP(SWAP, MEANS, horizon=1).to_dict()


def test_the_problem_says_whether_all_steps_are_alike() -> None:
    distribution, means = np.full((2, 1, 2), 0.5), np.array([[0.2], [0.7]])
    assert FiniteMDP(distribution, means, horizon=3).problem.homogeneous
    assert FiniteMDP(np.stack([distribution] * 3), means).problem.homogeneous
    assert not FiniteMDP(distribution, np.stack([means, means, means / 2])).problem.homogeneous
    other = np.array([[[0.4, 0.6]], [[0.5, 0.5]]])
    assert not FiniteMDP(np.stack([distribution, other, distribution]), means).problem.homogeneous


def test_the_problem_states_the_range_of_rewards() -> None:
    assert FiniteMDP(np.ones((1, 1, 1)), [[0.3]], horizon=2).problem.reward_range == (0.0, 1.0)


def test_one_table_for_all_steps_equals_explicit_copies() -> None:
    short = FiniteMDP(SWAP, MEANS, horizon=4)
    versions = [
        FiniteMDP(np.stack([SWAP] * 4), np.stack([MEANS] * 4)),
        FiniteMDP(np.stack([SWAP] * 4), MEANS),
        FiniteMDP(SWAP, np.stack([MEANS] * 4)),
    ]
    policy = random_policy(short, 1)
    assert short.world.transitions.shape == (1, 2, 2, 2)
    assert short.world.rewards.shape == (1, 1, 2, 2)
    for long in versions:
        assert long.world.transitions.shape == long.world.cumulative.shape == (4, 2, 2, 2)
        assert long.world.rewards.shape == (1, 4, 2, 2)
        np.testing.assert_array_equal(short.transitions, long.transitions)
        np.testing.assert_array_equal(short.rewards, long.rewards)
        np.testing.assert_array_equal(short.optimal_values(), long.optimal_values())
        np.testing.assert_array_equal(short.values(policy), long.values(policy))
        first, second = (mdp.rollout(policy, stream(9, "environment")) for mdp in (short, long))
        np.testing.assert_array_equal(first.states, second.states)
        np.testing.assert_array_equal(first.rewards, second.rewards)


def test_default_features_are_one_hot() -> None:
    features = FiniteMDP(SWAP, MEANS, horizon=1).features
    np.testing.assert_array_equal(features.reshape(4, 4), np.eye(4))


BAD = [
    ({"horizon": None}, "horizon must be given"),
    ({"horizon": 0}, "horizon must be an integer >= 1 and <= 1000000, got 0"),
    ({"horizon": 2.0}, "horizon must be an integer"),
    ({"transitions": np.stack([SWAP] * 4)}, "must agree, got 4 from transitions, 3 from horizon"),
    ({"rewards": np.stack([MEANS] * 2)}, "must agree, got 2 from rewards, 3 from horizon"),
    ({"transitions": SWAP[:, :, :1] * 0 + 1}, r"transitions must have shape \(S, A, S\)"),
    ({"transitions": SWAP[0]}, r"transitions must have shape \(any, any, any\), got \(2, 2\)"),
    ({"transitions": SWAP * 0.9}, r"transitions must sum to one .* got 0.9 at index \(0, 0\)"),
    ({"transitions": [[[2, -1]] * 2] * 2}, "transitions must be non-negative, got -1"),
    ({"transitions": [[[1], [1, 0]]]}, "transitions must be an array of numbers"),
    ({"transitions": SWAP * np.nan}, "transitions must be finite, got nan"),
    ({"rewards": MEANS[:, :1]}, r"rewards must have shape \(2, 2\), got \(2, 1\)"),
    ({"rewards": MEANS + 0.5}, r"rewards must be within \[0, 1\], got 1.5 at index \(1, 0\)"),
    ({"rewards": MEANS - 0.5}, r"rewards must be within \[0, 1\], got -0.5 at index \(0, 0\)"),
    ({"rewards": MEANS * np.nan}, "rewards must be finite"),
    ({"features": np.ones((2, 3, 1))}, r"features must have shape \(2, 2, any\), got \(2, 3, 1\)"),
    ({"features": np.ones((2, 2, 0))}, "the number d of features must be"),
    ({"start": 2}, "start must be an integer >= 0 and <= 1, got 2"),
    ({"transitions": [[[0.5, 0.4]]]}, r"transitions must have shape \(S, A, S\) or \(H, S, A, S\), got \(1, 1, 2\)"),
    ({"features": np.full((2, 2, 1), 1e160)}, r"features must be of magnitude at most 1e\+40, got 1e\+160"),
    ({"horizon": 10**9}, "horizon must be an integer >= 1 and <= 1000000, got 1000000000"),
    ({"start": [0.5, 0.6]}, "start must sum to one"),
    ({"start": [1.0]}, r"start must have shape \(2,\), got \(1,\)"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"transitions": SWAP, "rewards": MEANS, "horizon": 3}
    FiniteMDP(**good)
    with pytest.raises(InvalidInputError, match=message):
        FiniteMDP(**{**good, **change})

"""Bandits: the distributions of contexts, actions and rewards, and that all of `FiniteMDP` works for them."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy import stats

from belated._kernels.streams import stream
from belated.environments import Bandit, LinearBandit, as_gymnasium, environment_from_dict
from belated.errors import InvalidInputError, UnknownNameError
from belated.types import Floats, TablePolicy

FEATURES = np.array([[[3.0, 0.0], [0.0, 4.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
MEANS = np.array([[0.25, -2.0, 7.0], [0.5, 0.75, 0.0]])
CHANCES = np.array([[0.25, 0.5, 1.0], [0.5, 0.75, 0.0]])
PLAYED = TablePolicy(np.array([[0, 1]]))
SURE = 1e-4  # chance that a correct program fails a test of a distribution, were its seed not fixed


def draws(bandit: Bandit, count: int = 4000) -> tuple[Floats, Floats]:
    """Return the contexts and rewards of `count` rounds of `PLAYED`."""
    rng = stream(0, "environment")
    rounds = [bandit.rollout(PLAYED, rng, episode=k) for k in range(count)]
    return np.array([each.states[0] for each in rounds]), np.array([each.rewards[0] for each in rounds])


def test_contexts_are_drawn_uniformly() -> None:
    contexts, _ = draws(Bandit(FEATURES, MEANS))
    low, high = stats.binom.interval(1 - SURE, len(contexts), 0.5)
    assert low <= contexts.sum() <= high
    repeats = (contexts[1:] == contexts[:-1]).sum()  # independent of each other, too
    assert low <= repeats <= high


def test_contexts_in_turn_follow_the_number_of_the_round() -> None:
    bandit = Bandit(FEATURES, MEANS, in_turn=True)
    contexts, rewards = draws(bandit, 9)
    assert contexts.tolist() == [k % 2 for k in range(9)]
    assert rewards.tolist() == [0.25 if k % 2 == 0 else 0.75 for k in range(9)]


def test_without_noise_the_reward_is_its_mean() -> None:
    contexts, rewards = draws(Bandit(FEATURES, MEANS), 50)
    np.testing.assert_array_equal(rewards, np.where(contexts == 0, 0.25, 0.75))


def test_noise_is_gaussian_around_the_mean() -> None:
    contexts, rewards = draws(Bandit(FEATURES, MEANS, noise=1.5))
    for context, mean in ((0, 0.25), (1, 0.75)):
        assert stats.kstest(rewards[contexts == context], stats.norm(mean, 1.5).cdf).pvalue > SURE


def test_bernoulli_rewards_have_their_means() -> None:
    contexts, rewards = draws(Bandit(FEATURES, CHANCES, bernoulli=True))
    assert set(rewards.tolist()) == {0.0, 1.0}
    for context, mean in ((0, 0.25), (1, 0.75)):
        mine = rewards[contexts == context]
        low, high = stats.binom.interval(1 - SURE, len(mine), mean)
        assert low <= mine.sum() <= high


def test_values_and_the_optimum_are_read_off_the_table() -> None:
    bandit = Bandit(FEATURES, MEANS)
    assert bandit.values(PLAYED).tolist() == [[0.25, 0.75], [0.0, 0.0]]
    assert bandit.value(PLAYED) == 0.5
    assert bandit.optimal_policy().actions.tolist() == [[2, 1]]
    assert bandit.optimal_values().tolist() == [[7.0, 0.75], [0.0, 0.0]]
    assert bandit.optimal_value == (7.0 + 0.75) / 2
    assert (bandit.states, bandit.actions, bandit.dimension, bandit.horizon) == (2, 3, 2, 1)
    assert bandit.rewards.shape == (1, 2, 3)
    assert bandit.transitions.tolist() == np.ones((1, 2, 3, 1)).tolist()
    assert bandit.start.tolist() == [0.5, 0.5]
    assert (bandit.variants, bandit.problem.dynamics) == (1, None)


def test_memory_grows_with_the_features_only() -> None:
    bandit = Bandit(np.ones((2000, 3, 2)), np.zeros((2000, 3)))
    held = [each.nbytes for each in (*bandit.world, bandit.features) if isinstance(each, np.ndarray)]
    assert sum(held) <= 3 * bandit.features.nbytes


def test_linearity_and_normalised() -> None:
    theta = np.array([0.5, -2.0])
    linear = Bandit(FEATURES, FEATURES @ theta, in_turn=True, noise=0.25)
    assert max(linear.linearity()) < 1e-12
    bent = Bandit(np.ones((1, 3, 1)), [[-1.0, -1.0, 5.0]]).linearity()  # the best fit is 1
    assert bent == pytest.approx((4.0, 0.0, 4.0, 0.0, 6.0))  # the best arm pays 5, the first of equals -1
    unit = linear.normalised()
    np.testing.assert_allclose(unit.features * 4, FEATURES)
    np.testing.assert_array_equal(unit.rewards, linear.rewards)
    assert (unit.label, unit.noise, unit.bernoulli) == ("bandit-normalised", 0.25, False)
    rng = stream(0, "environment")
    assert [unit.first_state(rng, episode=k) for k in range(6)] == [0, 1] * 3
    assert Bandit(FEATURES, CHANCES, bernoulli=True).normalised().bernoulli


def test_equal_tables_have_equal_digests() -> None:
    versions = [
        Bandit(FEATURES, MEANS),
        Bandit(FEATURES, MEANS, in_turn=True),
        Bandit(FEATURES, MEANS, noise=0.1),
        Bandit(FEATURES, CHANCES),
        Bandit(FEATURES, CHANCES, bernoulli=True),
        Bandit(2 * FEATURES, MEANS),
    ]
    digests = [each.describe()["tables"] for each in versions]
    assert len(set(digests)) == len(versions)
    assert Bandit(FEATURES, MEANS, name="other").describe()["tables"] == digests[0]
    with pytest.raises(InvalidInputError, match="built from arrays has no plain specification, got Bandit"):
        versions[0].to_dict()


@pytest.mark.parametrize("copied", [lambda bandit: pickle.loads(pickle.dumps(bandit)), copy.deepcopy])
@pytest.mark.parametrize(
    "bandit", [Bandit(FEATURES, MEANS, in_turn=True, noise=0.5), LinearBandit(sets="random", contexts=3)]
)
def test_copies_play_the_same_rounds_and_stay_read_only(bandit: Bandit, copied: Any) -> None:
    policy = bandit.optimal_policy()
    other = copied(bandit)
    assert repr(other) == repr(bandit)
    assert other.describe() == bandit.describe()
    for each in (bandit, other):
        for table in (each.features, each.rewards, each.start, each.transitions, *each.world[:4]):
            assert not table.flags.writeable
    for episode in range(5):
        mine, theirs = (each.rollout(policy, stream(episode, "x"), episode=episode) for each in (bandit, other))
        assert mine.states[0] == theirs.states[0]
        assert mine.rewards[0] == theirs.rewards[0]


def test_the_arrays_of_the_caller_are_copied() -> None:
    features, means = FEATURES.copy(), MEANS.copy()
    bandit = Bandit(features, means)
    features[:], means[:] = 0, 0
    np.testing.assert_array_equal(bandit.features, FEATURES)
    np.testing.assert_array_equal(bandit.rewards[0], MEANS)


@pytest.mark.parametrize("extra", [{"noise": 0.5}, {"in_turn": True}])
def test_gymnasium_sees_the_rounds_that_rollout_draws(extra: dict[str, Any]) -> None:
    bandit = Bandit(FEATURES, MEANS, **extra)
    environment = as_gymnasium(bandit)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(3)))
    context, _ = environment.reset(seed=3)
    for episode in range(6):
        expected = bandit.rollout(PLAYED, rng, episode=episode)
        after, reward, terminated, _, _ = environment.step(np.int64(PLAYED.act(0, int(context))))
        assert (int(context), reward, int(after), terminated) == (expected.states[0], expected.rewards[0], 0, True)
        context, _ = environment.reset()
    if "in_turn" not in extra:  # Gymnasium wants every reset of one seed to be equal
        check_env(as_gymnasium(bandit), skip_render_check=True)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"features": [[1.0]]}, r"features must have shape \(any, any, any\), got \(1, 1\)"),
    ({"features": np.ones((0, 3, 2))}, "the number of contexts in features must be an integer >= 1, got 0"),
    ({"features": np.ones((2, 0, 2))}, "the number of actions in features must be an integer >= 1, got 0"),
    ({"features": np.ones((2, 3, 0))}, "the number d of features must be an integer >= 1, got 0"),
    ({"features": FEATURES * np.nan}, "features must be finite, got nan"),
    ({"rewards": MEANS.T}, r"rewards must have shape \(2, 3\), got \(3, 2\)"),
    ({"rewards": MEANS + np.inf}, "rewards must be finite"),
    ({"bernoulli": True}, r"rewards\[0, 1\] must be within \[0, 1\] with bernoulli, got -2.0"),
    ({"bernoulli": 1}, "bernoulli must be True or False, got 1"),
    ({"in_turn": "yes"}, "in_turn must be True or False, got 'yes'"),
    ({"noise": -0.5}, "noise must be a finite number >= 0, got -0.5"),
    ({"rewards": CHANCES, "bernoulli": True, "noise": 1}, "noise must be 0 with bernoulli"),
    ({"name": ""}, "name must be a non-empty string, got ''"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_tables_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Bandit(**{"features": FEATURES, "rewards": MEANS, **changes})


REWARDS = ("linear", "logistic", "conversion")


@pytest.mark.parametrize("reward", REWARDS)
def test_means_depend_on_the_projection_alone(reward: str) -> None:
    bandit = LinearBandit(dimension=4, actions=50, sets="random", contexts=20, reward=reward, seed=3)
    along = bandit.features @ bandit.theta
    means = 1 / (1 + np.exp(-along)) if reward == "logistic" else along
    np.testing.assert_allclose(bandit.rewards[0], means, rtol=0, atol=1e-15)
    assert np.linalg.norm(bandit.theta) == pytest.approx(3.0 if reward == "logistic" else 1.0)
    assert np.linalg.norm(bandit.features, axis=-1).max() <= 1.0
    assert bandit.bernoulli == (reward != "linear")
    assert (bandit.linearity().reward_error < 1e-12) == (reward != "logistic")
    if reward == "conversion":
        assert bandit.features.min() >= 0
        assert bandit.theta.min() >= 0
    else:
        assert bandit.features.min() < 0


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("reward", REWARDS)
def test_actions_are_uniform_in_the_ball(dimension: int, reward: str) -> None:
    bandit = LinearBandit(dimension=dimension, actions=2000, reward=reward)
    x = bandit.features[0]
    norms = np.linalg.norm(x, axis=1)
    assert stats.kstest(norms, lambda r: r**dimension).pvalue > SURE  # P(|x| <= r) = r^d
    # |x_i| / |x|, squared, is Beta(1/2, (d-1)/2) for a uniform direction
    if dimension > 1:
        shares = (x[:, 0] / norms) ** 2
        assert stats.kstest(shares, stats.beta(0.5, (dimension - 1) / 2).cdf).pvalue > SURE
    positive = (x[:, 0] > 0).sum()
    low, high = stats.binom.interval(1 - SURE, len(x), 0.5)
    assert positive == len(x) if reward == "conversion" else low <= positive <= high


def test_theta_is_uniform_on_the_sphere_over_seeds() -> None:
    thetas = np.array([LinearBandit(dimension=3, actions=1, seed=seed).theta for seed in range(500)])
    for axis in range(3):  # Archimedes: in three dimensions each coordinate is uniform on [-1, 1]
        assert stats.kstest(thetas[:, axis], stats.uniform(-1, 2).cdf).pvalue > SURE


def test_the_seed_decides_and_the_sets_differ() -> None:
    first, again, other = (LinearBandit(seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)
    assert not np.array_equal(first.theta, other.theta)
    assert (first.seed, other.seed) == (1, 2)
    many = LinearBandit(sets="changing", contexts=4)
    assert len({row.tobytes() for row in many.features}) == 4


@pytest.mark.parametrize(
    ("sets", "contexts"), [("fixed", [0, 0, 0, 0, 0]), ("changing", [0, 1, 2, 0, 1]), ("random", None)]
)
def test_sets(sets: str, contexts: list[int] | None) -> None:
    bandit = LinearBandit(sets=sets, contexts=None if sets == "fixed" else 3)
    rng = stream(0, "environment")
    seen = [bandit.first_state(rng, episode=k) for k in range(5 if contexts else 60)]
    assert seen == contexts if contexts else set(seen) == {0, 1, 2} and seen[:3] * 20 != seen
    assert bandit.states == (1 if sets == "fixed" else 3)
    assert LinearBandit(sets="random", actions=2).states == 1000


EXAMPLES = [
    LinearBandit(),
    LinearBandit(2, 7, "random", 4, "linear", 0.0, 5),
    LinearBandit(3, 4, "changing", 6, "logistic"),
    LinearBandit(3, 4, reward="conversion", seed=2),
]


@pytest.mark.parametrize("bandit", EXAMPLES, ids=lambda bandit: bandit.label)
def test_round_trip_through_json(bandit: LinearBandit) -> None:
    again = environment_from_dict(json.loads(json.dumps(bandit.to_dict())))
    assert isinstance(again, LinearBandit)
    assert None not in again.to_dict().values()
    assert (again.to_dict(), again.label, again.bernoulli) == (bandit.to_dict(), bandit.label, bandit.bernoulli)
    for mine, theirs in zip(bandit.world, again.world, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(bandit.features, again.features)


def test_labels_tell_bandits_apart() -> None:
    assert [bandit.label for bandit in EXAMPLES] == [
        "linear-bandit-d5-a100-0",
        "linear-bandit-d2-a7-5-random4-noise0",
        "linear-bandit-d3-a4-0-changing6-logistic",
        "linear-bandit-d3-a4-2-conversion",
    ]


BAD_LINEAR: list[tuple[dict[str, Any], str]] = [
    ({"dimension": 0}, "dimension must be an integer >= 1, got 0"),
    ({"actions": 0}, "actions must be an integer >= 1, got 0"),
    ({"contexts": 5}, 'contexts must be None with sets="fixed", where there is one set, got 5'),
    ({"sets": "random", "contexts": 0}, "contexts must be an integer >= 1, got 0"),
    ({"noise": -1}, "noise must be a finite number >= 0, got -1"),
    ({"reward": "conversion", "noise": 0.0}, 'noise must be None with reward="conversion"'),
    ({"seed": -1}, "seed must be an integer >= 0, got -1"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_LINEAR)
def test_bad_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LinearBandit(**changes)


@pytest.mark.parametrize("changes", [{"sets": "change"}, {"reward": "logit"}])
def test_unknown_names_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError, match=f"{next(iter(changes))} must be one of .* did you mean"):
        LinearBandit(**changes)


def test_the_problem_states_the_range_of_rewards() -> None:
    features = np.ones((1, 2, 1))
    assert Bandit(features, [[-0.5, 3.0]]).problem.reward_range == (-0.5, 3.0)
    assert Bandit(features, [[0.2, 0.3]]).problem.reward_range == (0.0, 1.0)
    assert Bandit(features, [[0.2, 0.3]], noise=0.1).problem.reward_range == (-np.inf, np.inf)
    assert LinearBandit(reward="logistic").problem.reward_range == (0.0, 1.0)

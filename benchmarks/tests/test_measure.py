"""The statistics of a measure, and the count of arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import belated
from benchmarks import limits
from benchmarks.kernels import draw_weights_many, learn_many, matrix_vector, normals_many
from benchmarks.measure import Measure, Target, at_least, at_most, below, duration, interleaved, ratios, unmeasured
from benchmarks.problems import QUICK
from benchmarks.profile import Profile, take_apart
from benchmarks.scene import agent_episodes, make_scene


def test_median_and_range_are_those_of_the_repeats() -> None:
    measure = Measure("x", (3.0, 1.0, 10.0), target=at_least(3))
    assert measure.spread == (3.0, 1.0, 10.0)
    assert measure.met is True


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        (at_least(2), 2.0, True),
        (at_least(2), 1.9, False),
        (at_most(2), 2.0, True),
        (at_most(2), 2.1, False),
        (below(2), 2.0, False),
    ],
)
def test_a_target_is_judged_by_its_sign(target: Target, value: float, met: bool) -> None:
    measure = Measure("x", (value,), target=target)
    assert measure.met is met
    assert measure.less_is_better is (target.sign != "≥")


def test_what_has_no_target_or_no_value_is_not_judged() -> None:
    assert Measure("x", (1.0,)).met is None
    missing = unmeasured("peer", "no network", target=at_least(20))
    assert (missing.spread, missing.met) == (None, None)
    assert missing.note == "not measured: no network"


def test_a_target_reads_as_a_sign_and_a_number() -> None:
    assert [str(target) for target in (at_least(50), at_most(1.6), below(2000))] == ["≥ 50", "≤ 1.6", "< 2000"]


def test_contestants_take_turns_in_an_order_that_is_reversed_every_other_time() -> None:
    calls: list[str] = []

    def contestant(name: str, value: float) -> float:
        calls.append(name)
        return value + len(calls)

    slow, fast = interleaved(3, lambda: contestant("slow", 100.0), lambda: contestant("fast", 0.0))
    assert calls == ["slow", "fast", "fast", "slow", "slow", "fast"]
    assert slow == [101.0, 104.0, 105.0]
    assert fast == [2.0, 3.0, 6.0]


def test_ratios_pair_the_repeats() -> None:
    assert ratios([10.0, 30.0], [2.0, 3.0]) == (5.0, 10.0)


def test_durations_have_a_suitable_unit() -> None:
    assert [duration(value) for value in (2.5e-6, 0.0305, 1.0)] == ["2.5 µs", "30.5 ms", "1 s"]


@pytest.mark.parametrize("shape", [(1, 3), (4, 5), (10, 7), (64, 33)])
def test_the_matrix_vector_product_is_one(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    matrix, x, y = rng.standard_normal(shape), rng.standard_normal(shape[0]), np.full(shape[1], np.nan)
    matrix_vector(matrix, x, y)
    np.testing.assert_allclose(y, matrix.T @ x, atol=1e-12)


def test_the_normal_numbers_are_those_of_the_generator() -> None:
    out = np.zeros(5)
    normals_many(np.random.default_rng(3), out, 2)
    np.testing.assert_array_equal(out, np.random.default_rng(3).standard_normal(10)[5:])


class _Counted(float):
    """A number that counts the arithmetic done with it."""

    done = 0

    def _count(self, value: float) -> _Counted:
        _Counted.done += 1
        return _Counted(value)

    def __add__(self, other: float) -> _Counted:
        return self._count(float(self) + float(other))

    def __sub__(self, other: float) -> _Counted:
        return self._count(float(self) - float(other))

    def __mul__(self, other: float) -> _Counted:
        return self._count(float(self) * float(other))

    def __truediv__(self, other: float) -> _Counted:
        return self._count(float(self) / float(other))

    def root(self) -> _Counted:
        return self._count(math.sqrt(self))

    def larger(self, other: float) -> _Counted:
        return self._count(max(float(self), other))


def test_the_floor_counts_what_a_plain_episode_does() -> None:
    """Every operation of update, draw and Q by hand."""
    world = belated.RandomLinearMDP(states=3, actions=2, dimension=24, horizon=2)
    scene = make_scene(world, belated.DelayedPSVI(draws=3), episodes=2)
    d, states, pairs, draws = 24, 3, 6, 3
    numbers, x = [_Counted(1.0) for _ in range(d)], _Counted(1.0)
    _Counted.done = 0
    for k in range(d):  # one rotation a row
        p = x / 2.0
        total = x + p * p
        root = total.root()
        inverse = x / root
        _ = x * inverse, p * inverse * inverse, x * (root * inverse)
        for j in range(k + 1, d):
            above, rest = numbers[j], numbers[k]
            _ = above * 0.5 + rest * 0.5, rest - above * 0.5
    for _ in range(1 + draws):  # triangular solves
        for k in range(d):
            _ = x / 2.0
            for j in range(k + 1, d):
                _ = numbers[j] - numbers[k] * 2.0
    for _ in range(draws * pairs + states):  # action values, and the target moment
        for number in numbers:
            _ = number + number * 2.0
    for _ in range(draws * pairs + states):  # the largest of them, and the cap
        x.larger(2.0)
    for number in numbers:  # moments, and the noise of the draws
        _ = number / 2.0, x + (number / 4.0) * 2.0, x + number
        for _ in range(draws):
            _ = number + number * 2.0
    assert limits.psvi_flops(scene) == world.horizon * _Counted.done
    assert limits.psvi_normals(scene) == world.horizon * draws * d
    assert limits.value_flops(world) == 2 * 3 * (3 + 3)  # steps × states × (a product and a sum for each next state)


def test_the_floor_knows_that_leading_zeros_need_no_rotation() -> None:
    features = np.zeros((1, 1, 10))
    features[0, 0, 8:] = 1.0
    transitions, rewards = np.ones((1, 1, 1)), np.zeros((1, 1))
    found = []
    for each in (features, np.ones((1, 1, 10))):
        world = belated.FiniteMDP(transitions, rewards, features=each, horizon=1)
        found.append(limits.psvi_flops(make_scene(world, belated.DelayedPSVI(), episodes=1)))
    assert found[1] - found[0] == 2.5 * (10 * 9 - 2 * 1) + 10 * (10 - 2)


@pytest.mark.parametrize(
    "algorithm",
    [belated.DelayedPSVI(), belated.DelayedLPSVI(steps=3), belated.DelayedUCBVI()],
)
@pytest.mark.slow  # each compiles for ten seconds
def test_a_scene_is_what_the_agent_met_and_its_pieces_run(algorithm: belated.agents.CompiledSettings) -> None:
    world = belated.RandomLinearMDP(states=3, actions=2, dimension=4, horizon=3)
    scene = make_scene(world, algorithm, episodes=5)
    assert scene.policies.shape == (5, 3, 3)
    for states, actions, policy in zip(scene.states, scene.actions, scene.policies, strict=True):
        np.testing.assert_array_equal(policy[np.arange(3), states[:-1]], actions)
    before = {name: values.copy() for name, values in scene.agent.memory().items()}
    draw_weights_many(scene.agent.record, np.random.default_rng(0), 2)
    after = scene.agent.memory()
    np.testing.assert_array_equal(before["reward_moment"], after["reward_moment"])  # a draw learns nothing
    agent_episodes(scene)(3)
    expected = algorithm.start(world.problem)
    for i in (0, 1, 2, 3, 4, 0, 1, 2):
        trajectory = belated.Trajectory(scene.states[i], scene.actions[i], scene.rewards[i])
        expected.learn([belated.Feedback(0, trajectory)])
    np.testing.assert_allclose(after["reward_moment"], expected.memory()["reward_moment"])


def test_an_update_is_timed_with_all_that_the_agent_puts_off() -> None:
    world = belated.RandomLinearMDP(states=3, actions=2, dimension=4, horizon=3)
    scene = make_scene(world, belated.DelayedPSVI(), episodes=5)
    before = scene.agent.record.learned.factor.copy()
    learn_many(scene.agent.record, scene.states, scene.actions, scene.rewards, 1)
    assert not np.array_equal(scene.agent.record.learned.factor, before)


@pytest.mark.slow  # it compiles for half a minute
def test_an_episode_is_taken_apart() -> None:
    world = belated.RandomLinearMDP(states=3, actions=2, dimension=4, horizon=3)
    effort = replace(QUICK, repeats=1, least_seconds=1e-4)
    found = take_apart("psvi", "tiny", world, belated.DelayedPSVI(), 1, effort)
    assert list(found.parts) == ["update", "draw", "Q", "rollout", "evaluation", "recording"]
    assert all(found.parts[name] > 0 for name in ("update", "draw", "rollout", "evaluation"))
    assert found.whole > 0


def test_the_parts_of_a_profile_and_the_remainder_add_up() -> None:
    profile = Profile("psvi", "small", 10.0, {"update": 2.0, "draw": 3.5})
    assert profile.remainder == 4.5
    plain = profile.to_dict()
    assert plain["whole"] == plain["update"] + plain["draw"] + plain["remainder"]

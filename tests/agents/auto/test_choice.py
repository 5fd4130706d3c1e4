"""The map that `AutoPSVI` chooses: by what has arrived alone, whatever the bounds, and saved with the agent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from odd_worlds import Always, Odd

from belated import AutoPSVI, Feedback, Poisson, load_agent, save_agent
from belated.agents._auto.choice import SAMPLE, Choice, row_keys, several_steps
from belated.agents._auto.rule import Returns
from belated.agents._auto.sparse import NOTHING, NetworkPolicy
from belated.agents._transitions import Rows
from belated.environments import GymEnvironment
from belated.environments._play import play
from belated.errors import InvalidInputError
from belated.features import Adaptive, Distinct, Features, Network, Tiles
from belated.runner import simulate


class Drift(gymnasium.Env[Any, Any]):
    """Numbers that wander, of which the first can be pushed; pays for being near 0. Bounds are `bound` or none."""

    action_space = spaces.Discrete(2)

    def __init__(self, numbers: int = 5, bound: float = np.inf, rounded: bool = False) -> None:
        self.observation_space = spaces.Box(-bound, bound, (numbers,))
        self.numbers, self.rounded = numbers, rounded

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.x = self.np_random.standard_normal(self.numbers)
        return self._seen(), {}

    def _seen(self) -> Any:
        return np.round(np.clip(self.x, -1, 1)) if self.rounded else self.x.astype(np.float32)

    def step(self, action: Any) -> Any:
        self.x = 0.9 * self.x + 0.3 * self.np_random.standard_normal(self.numbers)
        self.x[0] += 0.5 * (2 * int(action) - 1)
        return self._seen(), float(np.exp(-(self.x[0] ** 2))), False, False, {}


def drift(**settings: Any) -> GymEnvironment:
    return GymEnvironment(Drift, horizon=8, reward_range=(0.0, 1.0), **settings)


def learned(environment: GymEnvironment, episodes: int = 6) -> Any:
    agent: Any = AutoPSVI().start(environment.problem)
    rng = np.random.default_rng(0)
    for k in range(episodes):
        agent.learn([Feedback(k, play(environment, agent.plan(rng), seed=0, episode=k))])
    agent.plan_now(rng)
    return agent


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"numbers": 5}, Network),
        ({"numbers": 200}, Network),
        ({"numbers": 2}, Tiles),
        ({"numbers": 4}, Tiles),
        ({"numbers": 2, "rounded": True}, Distinct),
        ({"numbers": 2, "features": "learned"}, Network),
    ],
    ids=str,
)
def test_the_choice_can_be_seen(settings: dict[str, Any], kind: type[Features]) -> None:
    agent = learned(drift(**settings))
    assert type(agent.features) is kind
    assert f"features: {kind.__name__}(" in str(agent)


class OneWay(gymnasium.Env[Any, Any]):
    """A deterministic world with one start, where every sequence of actions leads to a number of its own."""

    action_space, observation_space = spaces.Discrete(2), spaces.Box(0.0, 1.0, (1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.place, self.width = 0.0, 0.5
        return np.array([self.place]), {}

    def step(self, action: Any) -> Any:
        self.place, self.width = self.place + self.width * int(action), self.width / 2
        return np.array([self.place + self.width]), 1.0, False, False, {}


def test_repeating_a_path_makes_no_table() -> None:
    environment = GymEnvironment(OneWay, horizon=6, reward_range=(0.0, 1.0))
    agent = AutoPSVI().start(environment.problem)
    for k in range(20):
        agent.learn([Feedback(k, play(environment, Always(1), seed=0, episode=k))])
    agent.plan(np.random.default_rng(0))
    assert "features: Tiles(" in str(agent)


def test_long_episodes_play_one_draw_of_a_networks_output_layer_at_all_steps() -> None:
    environment = GymEnvironment(Drift, horizon=501, reward_range=(0.0, 1.0))
    agent = learned(environment, episodes=2)
    weights, network = agent.plan_memory()["plan.weights"], agent.features
    assert isinstance(network, Network) and weights.shape == (1, 2, network.size)
    output = np.concatenate([network.layers[4], network.layers[5][np.newaxis]]).T
    assert np.abs(weights[0] - output).max() > 0.0
    policy = agent.policy(np.random.default_rng(0))
    for number in np.linspace(-1.0, 1.0, 9):
        seen: Any = environment.encode(np.full(5, number, np.float32))
        values = weights[0] @ network.encode(seen.values).values
        assert {policy.act(step, seen) for step in (0, 100, 500)} == {values.argmax()}
        for best in (0, 1):  # the last weight is that of the constant
            constant = np.zeros((2, network.size))
            constant[best, -1] = 1.0
            assert NetworkPolicy(network, constant).act(0, seen) == best


@pytest.mark.parametrize(("horizon", "trained"), [(8, 8), (500, 500), (501, 200), (2_000, 200)])
def test_a_network_is_trained_for_what_arrives(horizon: int, trained: int) -> None:
    agent = learned(GymEnvironment(Drift, horizon=horizon, reward_range=(0.0, 1.0)), episodes=1)
    assert agent.features.trained == trained


def test_a_plan_on_a_network_is_for_the_last_steps_and_those_before_play_its_first() -> None:
    environment = GymEnvironment(Drift, horizon=203, reward_range=(0.0, 1.0))
    agent = learned(environment, episodes=2)
    weights = agent.plan_memory()["plan.weights"]
    assert isinstance(agent.features, Network) and len(weights) == 200
    policy = agent.policy(np.random.default_rng(0))
    for step, row in ((0, 0), (3, 0), (4, 1), (202, 199)):
        for number in np.linspace(-1.0, 1.0, 9):
            seen = environment.encode(np.full(5, number, np.float32))
            values = weights[row] @ agent.features.encode(seen.values).values
            assert policy.act(step, seen) == values.argmax()


def test_a_map_that_is_given_stays() -> None:
    environment = drift(features=Tiles())
    assert learned(environment).features is environment.features


@pytest.mark.parametrize("numbers", [2, 5])
def test_stated_bounds_change_nothing(numbers: int) -> None:
    """A hundred times as wide, or none: what was seen is the same, and so is everything that is played."""
    rows = [
        simulate(drift(numbers=numbers, bound=bound), AutoPSVI(), Poisson(1), episodes=12, seed=3)
        for bound in (8.0, 800.0, np.inf)
    ]
    assert rows[0].equals(rows[1]) and rows[0].equals(rows[2])


@pytest.mark.parametrize("numbers", [2, 5])
def test_units_of_observations_change_little(numbers: int) -> None:
    """In other units, by a power of two so that nothing is rounded, the scaled numbers and the play are the same."""

    class Scaled(Drift):
        def _seen(self) -> Any:
            return 1024.0 * super()._seen()

    world = GymEnvironment(Scaled, horizon=8, reward_range=(0.0, 1.0), numbers=numbers)
    rows = [simulate(each, AutoPSVI(), Poisson(1), episodes=8, seed=3) for each in (drift(numbers=numbers), world)]
    if numbers == 2:  # tiles; the order in which a network is trained goes by the numbers themselves
        assert rows[0].equals(rows[1])
    assert rows[0]["sampled_return"].to_numpy() == pytest.approx(rows[1]["sampled_return"].to_numpy(), abs=8.0)


@pytest.mark.parametrize("settings", [{"numbers": 5}, {"numbers": 3}, {"numbers": 2, "rounded": True}], ids=str)
def test_saved_and_restored_to_the_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    environment = drift(**settings)
    agent, rng = learned(environment), np.random.default_rng(1)
    save_agent(tmp_path / "agent.npz", agent, rng)
    copy, copied = load_agent(tmp_path / "agent.npz")
    assert copy.features.to_dict() == agent.features.to_dict()
    for k in range(6, 10):
        one, other = (play(environment, each.plan(r), seed=0, episode=k) for each, r in ((agent, rng), (copy, copied)))
        np.testing.assert_array_equal(one.actions, other.actions)
        agent.learn([Feedback(k, one)])
        copy.learn([Feedback(k, other)])
    assert copy.features.to_dict() == agent.features.to_dict()
    for name, values in agent.memory().items():
        np.testing.assert_array_equal(copy.memory()[name], values)


def test_what_is_saved_is_checked() -> None:
    agent = learned(drift(numbers=5))
    memory = agent.memory()
    for said in (b"{", b'{"features": "tiles", "low": [0], "high": [1]}', b'{"features": "nowhere:Map"}', b"[]"):
        with pytest.raises(InvalidInputError, match="memory must hold a feature map for the problem"):
            agent.restore({**memory, "features.map": np.frombuffer(said, np.uint8)})
    agent.restore(memory)


def test_a_plan_that_does_not_fit_its_network_is_refused() -> None:
    agent = learned(GymEnvironment(Drift, horizon=501, reward_range=(0.0, 1.0)), episodes=1)
    nothing = {f"plan.{name}": np.array(values) for name, values in NOTHING._asdict().items()}
    with pytest.raises(InvalidInputError, match="memory must hold a plan for its network"):
        agent.restore({**agent.memory(), **nothing})


def test_the_order_of_arrival_does_not_matter() -> None:
    environment = drift(numbers=5)
    rng = np.random.default_rng(0)
    policy = AutoPSVI().start(environment.problem).plan(rng)
    late = [Feedback(k, play(environment, policy, seed=0, episode=k)) for k in range(8)]
    features = []
    for batches in ([late], [late[::-1]], [late[5:], late[2:5], late[:2]]):
        agent = AutoPSVI().start(environment.problem)
        for batch in batches:
            agent.learn(batch)
        agent.plan(np.random.default_rng(7))
        features.append(agent.features.encode(np.linspace(-1, 1, 5)).values)  # type: ignore[attr-defined]
    np.testing.assert_allclose(features[1], features[0], atol=1e-9)
    np.testing.assert_allclose(features[2], features[0], atol=1e-9)


def some_rows(count: int) -> tuple[Any, Rows]:
    rng = np.random.default_rng(0)
    numbers, ones = rng.standard_normal((count, 5)), np.ones(count)
    state, after = np.arange(count), rng.integers(-1, count, size=count)
    return numbers, Rows(state, rng.integers(3, size=count), after, ones, ones, ones * 0.5, ones * 0.25, ones, ones)


def test_a_sample_stands_for_all() -> None:
    numbers, rows = some_rows(2 * SAMPLE)
    choice = Choice(Adaptive(), GymEnvironment(Drift, horizon=8, reward_range=(0, 1)).problem)
    choice.map = Distinct()
    choice.encoded(numbers)
    assert len(choice.transitions(numbers, rows).state) == 2 * SAMPLE  # tiles and tables are planned from all
    choice.map = Network.begun(numbers, 3, np.random.default_rng(0))
    choice.encoded(numbers)
    some = choice.transitions(numbers, rows)
    assert len(some.state) == SAMPLE
    for column in ("visits", "rewarded", "rewards", "squares"):
        assert getattr(some, column).sum() == pytest.approx(getattr(rows, column).sum())
    few_numbers, few = some_rows(100)
    choice.encoded(few_numbers)
    for name, same in few._asdict().items():
        np.testing.assert_array_equal(getattr(choice.transitions(few_numbers, few), name), same)


@pytest.mark.parametrize("ahead", [1, 3])
def test_a_network_is_trained_on_several_steps(ahead: int) -> None:
    """Against a walk from each transition, which ends where a state was left in more ways than one, or in none."""
    numbers, rows = some_rows(400)
    rng = np.random.default_rng(2)
    rows = rows._replace(
        state=rng.integers(380, size=400),
        visits=rng.integers(1, 4, size=400).astype(np.float64),
        rewards=rng.standard_normal(400),
    )
    order = rng.permutation(400)
    found = several_steps(numbers, rows, order, ahead, 0.9, 2.0)
    lengths = set()
    for place, i in enumerate(order.tolist()):
        row, total, factor, length = i, 0.0, 1.0, 0
        while True:
            total += factor * rows.rewards[row] / rows.visits[row] / 2.0
            factor, length, after = 0.9 * factor, length + 1, rows.after[row]
            ways = np.flatnonzero(rows.state == after)
            if length == ahead or after < 0 or len(ways) != 1:
                break
            row = int(ways[0])
        lengths.add(length)
        assert (found.state[place], found.action[place], found.after[place]) == (rows.state[i], rows.action[i], after)
        assert found.rewards[place] == pytest.approx(total)
        assert found.discount[place] == pytest.approx(factor if after >= 0 else 0.0)
    assert lengths == set(range(1, ahead + 1))


def test_values_of_a_network_are_bounded_by_what_is_possible() -> None:
    stated = learned(drift(numbers=5))
    steps = sum(0.75**i for i in range(8))  # γ = 1 − 2/H
    assert stated._bounds() == pytest.approx((0.0, steps))
    assert stated._choice._bounds == (-np.inf, np.inf)  # only where its values are played
    long = learned(GymEnvironment(Drift, horizon=501, reward_range=(0.0, 1.0)), episodes=1)
    unit = math.sqrt(long.store.rows().squares.mean())
    assert long._choice._bounds == pytest.approx((0.0, (1 - 0.99**501) / 0.01 / unit))
    unstated: Any = learned(GymEnvironment(Drift, horizon=8))
    unstated.paid = -1.0, 1.0
    for seen, bounds in (
        (Returns(worst=-0.3, best=0.5, worst_mean=-0.1, best_mean=0.1), (-0.2 * steps, 1.0)),  # twice what was seen
        (Returns(worst=-8.0, best=8.0, worst_mean=-1.0, best_mean=1.0), (-steps, steps)),
    ):
        unstated._returns = seen
        assert unstated._bounds() == pytest.approx(bounds)


def test_observations_in_the_same_tiles_are_one_state() -> None:
    numbers, rows = some_rows(500)
    choice = Choice(Adaptive(), GymEnvironment(Drift, horizon=8, reward_range=(0, 1)).problem)
    choice.map = tiles = Tiles(low=(-3.0,) * 5, high=(3.0,) * 5, tilings=1, bins=2, join="single")
    states, planned = choice.encoded(numbers), choice.transitions(numbers, rows)
    patterns = {tuple(tiles.encode(row).indices.tolist()) for row in numbers}
    assert len(states.starts) - 1 == len(patterns) < 500

    def tiles_of(state: int) -> list[int]:
        found: list[int] = states.indices[states.starts[state] : states.starts[state + 1]].tolist()
        return found

    for i in range(500):
        assert tiles_of(planned.state[i]) == tiles.encode(numbers[rows.state[i]]).indices.tolist()
        if rows.after[i] < 0:
            assert planned.after[i] == -1
        else:
            assert tiles_of(planned.after[i]) == tiles.encode(numbers[rows.after[i]]).indices.tolist()


def test_keys_of_transitions_do_not_depend_on_numbering() -> None:
    numbers, rows = some_rows(500)
    order = np.random.default_rng(1).permutation(500)
    place = np.argsort(order)
    renumbered = rows._replace(state=place[rows.state], after=np.where(rows.after < 0, -1, place[rows.after]))
    keys = row_keys(numbers, rows)
    np.testing.assert_array_equal(row_keys(numbers[order], renumbered), keys)
    assert len(set(keys.tolist())) == 500
    assert not (row_keys(numbers, rows._replace(action=rows.action + 1)) == keys).any()


def test_a_table_of_unknown_states_notes_its_rewards_as_any_table() -> None:
    noted = {
        rounded: len(learned(drift(numbers=2, rounded=rounded)).memory()["changes.pairs"]) for rounded in (True, False)
    }
    assert 9 <= noted[True] <= 18  # at most nine observations with two actions each
    assert noted[False] <= 8  # of the first episode, before tiles were chosen


SPACES: list[spaces.Space[Any]] = [
    spaces.Box(-1, 1, (3,)),
    spaces.Box(-np.inf, np.inf, (2, 4)),
    spaces.Box(0, 255, (128,), np.uint8),
    spaces.MultiDiscrete([30, 30, 30]),
    spaces.MultiBinary(40),
    spaces.Tuple((spaces.Discrete(3), spaces.Box(0, 1, (2,)))),
    spaces.Dict({"z": spaces.Discrete(2), "a": spaces.Tuple((spaces.MultiBinary(20), spaces.Box(0, np.inf, (3,))))}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_space_is_played(space: spaces.Space[Any]) -> None:
    environment = GymEnvironment(Odd, space=space, horizon=5, reward_range=(0, 1))
    assert simulate(environment, AutoPSVI(), Poisson(1), episodes=6, seed=0)["sampled_return"].to_list() == [5.0] * 6

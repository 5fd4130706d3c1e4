"""A served model in `run`: what is compared in simulation is what decides in production."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from belated import AutoPSVI, Poisson, RiverSwim, run
from belated.agents import agent_from_dict
from belated.decisions import Served, replay_sessions
from belated.decisions._served import ServedAgent, contexts_of
from belated.environments import GymEnvironment, ShopFunnel, as_gymnasium, play
from belated.errors import InvalidInputError
from belated.features import Fourier, OneHot, Tiles
from belated.types import Feedback, SimulatorProblem


def last_fifth(returns: Any) -> float:
    return float(returns[:, -returns.shape[1] // 5 :].mean())


def test_the_funnel_is_learned() -> None:
    funnel = ShopFunnel()
    results = run(funnel, Served(every=8), Poisson(10), episodes=600, seeds=1)
    # the standard error of 120 returns is 0.06 at most; what pays at once earns 0.38, the best policy 0.74
    assert last_fifth(results.returns(agent="served")) > funnel.optimal_value - 0.2


@pytest.mark.slow
@pytest.mark.parametrize("environment", [RiverSwim(states=6, horizon=20), ShopFunnel()], ids=["river", "funnel"])
def test_returns_are_those_of_the_agent_in_process(environment: Any) -> None:
    """At least 95 % of them, up to two standard errors of the difference."""
    agents: dict[str, Any] = {"served": Served(), "in process": AutoPSVI()}
    results = run(environment, agents, Poisson(10), episodes=1000, seeds=3)
    served, other = (results.returns(agent=name)[:, -200:].ravel() for name in agents)
    error = np.sqrt((served.var() + other.var()) / served.size)
    print(f"{environment.label}: served {served.mean():.3f}, in process {other.mean():.3f}, ± {error:.3f}")
    assert served.mean() > 0.95 * other.mean() - 2 * error


def played(served: Served, environment: Any, episodes: int) -> ServedAgent:
    agent, rng = served.start(environment.problem), np.random.default_rng(4)
    for episode in range(episodes):
        late = play(environment, agent.plan(rng), seed=3, episode=episode)
        agent.learn([Feedback(episode, late)])
    return agent


@pytest.mark.parametrize("agent", ["auto-psvi", "epsilon-greedy"])
def test_a_replayed_log_has_the_same_plans(agent: str) -> None:
    """The log, fed to the model's own agent, gives every step the probabilities that were logged, to the bit."""
    model = played(Served(agent=agent, every=4, floor=0.1), ShopFunnel(3), 21).model
    steps = 0
    for session, rows in replay_sessions(model, model.settings):
        for step, row in zip(session.steps, rows, strict=True):
            assert tuple(row.tolist()) == step.probabilities
            steps += 1
    assert steps == 63
    planner = model.new_planner()
    for place in sorted({session.plan or 0 for session, _ in replay_sessions(model, model.settings)})[1:]:
        planner.catch_up(place)
        made = planner.draw(model.settings, 1, 0.0)
        stored = model.store.plan(model.name, place)
        if stored is not None:  # sets that no session uses any more are dropped
            assert made.content == stored.content


def test_actions_are_drawn_with_the_logged_probabilities() -> None:
    """χ² of the first actions, and of the later ones given all before: 20.5 and 24.3 are exceeded once in 10 000 times.

    The terms of later steps are a martingale, since a probability is given the steps before; and the product over a
    session is the chance of its actions whichever member it has drawn.
    """
    model = played(Served(every=500, floor=0.2), ShopFunnel(3), 21).model
    model.plan()
    rng, off, variance, actions = np.random.default_rng(3), np.zeros((3, 3)), np.zeros((3, 3)), ("0", "1", "2")
    for number in range(150):
        for step in range(3):
            made = model.decide({"state": str(rng.integers(4))}, session=f"more {number}")
            entry = model.lookup(made.id)
            chances = np.array(entry.probabilities)
            assert entry.probability == chances[actions.index(made.action)]
            off[step] += (np.array(actions) == made.action) - chances
            variance[step] += chances * (1 - chances)
    squares = (off**2 / variance).sum(axis=1) * 2 / 3  # three terms that sum to zero have two degrees of freedom
    assert squares[0] < 20.5
    assert squares[1] + squares[2] < 24.3


def test_the_same_seed_plays_the_same_sessions() -> None:
    results = [run(ShopFunnel(3), Served(every=2), Poisson(1), episodes=12, seeds=1) for _ in range(2)]
    one, two = (each.returns(agent="served") for each in results)
    np.testing.assert_array_equal(one, two)


def test_rewards_arrive_as_feedback_and_ends_as_ends() -> None:
    agent = played(Served(), ShopFunnel(3), 3)
    session = agent.model.lookup_session("1")
    assert session.status == "ended"
    assert not session.terminal
    assert session.context["state"] in "01234"  # where it was cut
    assert [step.step for step in session.steps] == [0, 1, 2]
    assert all(step.learned is not None for step in session.steps)


def test_a_trajectory_that_came_before_is_refused() -> None:
    funnel = ShopFunnel(3)
    agent, rng = Served().start(funnel.problem), np.random.default_rng(0)
    late = Feedback(0, play(funnel, agent.plan(rng), seed=0, episode=0))
    agent.learn([late])
    with pytest.raises(InvalidInputError, match="from played sessions, once each"):
        agent.learn([late])


def test_contexts_are_made_of_what_states_are() -> None:
    table, context = contexts_of(ShopFunnel().problem)
    assert (table, context(np.int64(3))) == ({"categories": ["state"], "hashed": 5}, {"state": "3"})

    def contexts(features: Any, observation: Any) -> Any:
        table, context = contexts_of(SimulatorProblem(features, 3, actions=2))
        return table, context(features.encode(observation))

    assert contexts(OneHot(sizes=(7,)), 4)[1] == {"state": "4"}
    tiles = Tiles(low=(0.0,), high=(1.0,), tilings=2, bins=2)
    assert contexts(tiles, np.array([0.9]))[1] == {"tiles": [str(i) for i in tiles.encode(np.array([0.9])).indices]}
    fourier = Fourier(low=(0.0,), high=(1.0,), order=2)
    table, context = contexts(fourier, np.array([0.0]))
    assert table["features"] == ["feature 0", "feature 1", "feature 2"]
    assert context == {f"feature {i}": value for i, value in enumerate(fourier.encode(np.array([0.0])).values.tolist())}
    with pytest.raises(InvalidInputError, match="to be served as the numbers of a context"):
        contexts_of(SimulatorProblem(Fourier(low=(0.0,), high=(1.0,), order=2000), 3, actions=2))


def test_a_simulator_is_served() -> None:
    environment = GymEnvironment(lambda: as_gymnasium(ShopFunnel(3)), horizon=3)
    results = run(environment, Served(), Poisson(1), episodes=6, seeds=1)
    assert np.isfinite(results.returns(agent="served")).all()


def test_it_is_found_by_its_name() -> None:
    served = Served(agent="psvi", every=5)
    assert agent_from_dict(served.to_dict()) == served


@pytest.mark.parametrize(("name", "value"), [("floor", 2.0), ("every", 0), ("agent", "oppo")])
def test_settings_that_cannot_be_served_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError):
        Served(**{name: value})

"""Numbers that no float can square, and the same feedback twice: refused before anything is learned, or lived with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import belated
from attacks.files import plain
from attacks.tally import Tally
from belated._util.validate import LARGEST_NUMBER
from belated.agents import AGENTS
from belated.errors import InvalidInputError
from belated.features import FromCallable, Joint
from belated.types import Feedback, PlansFromStart, SimulatorProblem, SparseRows, SparseVector, TableProblem, Trajectory

SIZE, ACTIONS, HORIZON = 3, 2, 4
#: Rewards and features: what is usual, what is just allowed, and what is not.
MAGNITUDES = [0.0, 1.0, -1.0, 0.5, 1e-160, 1e-12, 1e6, -1e6, 1e8, LARGEST_NUMBER, -LARGEST_NUMBER]
TOO_LARGE = [1.1 * LARGEST_NUMBER, -1e40, 1e160, -1e200, 1.7e308, np.inf, -np.inf, np.nan]
RANGES = [(0.0, 1.0), (-1.0, 0.0), (-LARGEST_NUMBER, LARGEST_NUMBER), (-np.inf, np.inf)]
ANY = (-LARGEST_NUMBER, LARGEST_NUMBER)


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Let agents of every algorithm, on features and on tables, learn numbers at random."""
    for _ in range(tries):
        if not tally.left():
            return
        name = str(rng.choice(list(AGENTS)))
        world = str(rng.choice(["features", "joint", "table"]))
        low, high = RANGES[int(rng.integers(len(RANGES)))]
        learned = bool(world != "table" and rng.random() < 0.3)
        with tally.attempt(f"{name} on {world} in ({low:g}, {high:g}){', learned' if learned else ''}"):
            agent = _agent(name, world, (low, high), learned, rng)
            if agent is not None:
                _play(agent, rng)


def _agent(name: str, world: str, bounds: tuple[float, float], learned: bool, rng: np.random.Generator) -> Any:
    """Return a new agent, None where the algorithm does not play."""
    problem: Any
    if world == "table":
        magnitude = [1.0, 1e6, 1e12][int(rng.integers(3))]
        problem = TableProblem(
            magnitude * rng.normal(size=(SIZE, ACTIONS, 2)), 1 if _one_step(name) else HORIZON, reward_range=bounds
        )
    else:
        joint = Joint(function=lambda observation, action: np.zeros(SIZE), actions=ACTIONS, width=SIZE)
        apart = FromCallable(function=lambda observation: np.zeros(SIZE), width=SIZE)
        problem = SimulatorProblem(
            joint if world == "joint" else apart, HORIZON, actions=ACTIONS, reward_range=bounds, learned_range=learned
        )
    settings: dict[str, Any] = {}
    if name == "fixed":
        settings = {"actions": np.zeros((HORIZON, SIZE), np.int64)}
    elif name in ("multi-batch", "rare-switching", "bold", "qpm-d"):
        settings = {"base": belated.DelayedPSVI()}
    try:
        return AGENTS[name](**settings).start(problem)
    except InvalidInputError:  # it is for other problems
        return None


def _one_step(name: str) -> bool:
    return name in ("pslb", "ofu", "otf-linucb", "otf-lints", "qpm-d")


def _play(agent: Any, rng: np.random.Generator) -> None:
    """Learn 12 pieces of feedback, each perhaps spoiled or given again, and plan after each."""
    kept: list[Feedback] = []
    stream = np.random.default_rng(int(rng.integers(2**32)))
    for episode in range(12):
        spoiled = rng.random() < 0.4
        late = _feedback(agent.problem, episode, spoiled, rng)
        before = _memory(agent)
        try:
            agent.learn([late])
        except InvalidInputError:
            assert _memory(agent) == before, "it was refused, and yet something was learned"
        else:
            assert not spoiled, f"learned {late.trajectory}"
            kept.append(late)
        if kept and rng.random() < 0.5:
            before, again = _memory(agent), kept[int(rng.integers(len(kept)))]
            if type(agent).__name__ not in ("RandomSampler",) and not _drops(agent, again):
                try:
                    agent.learn([again])
                except InvalidInputError:
                    assert _memory(agent) == before, "it was refused, and yet something was learned"
                else:
                    raise AssertionError(f"episode {again.episode} was learned twice")
        start = int(rng.integers(SIZE))
        policy = agent.plan_from(stream, start) if isinstance(agent, PlansFromStart) else agent.plan(stream)
        for step in range(agent.problem.horizon):
            state: Any = start if step == 0 else int(rng.integers(SIZE))
            if isinstance(agent.problem, SimulatorProblem):
                state = _state(agent.problem, rng)
            assert 0 <= policy.act(step, state) < ACTIONS


def _drops(agent: Any, late: Feedback) -> bool:
    """Tell whether a multi-batch agent drops feedback of an earlier batch, again and again."""
    first = getattr(agent, "first", agent.counts[1] if hasattr(agent, "counts") else 0)
    return agent.settings.kind == "multi-batch" and late.episode < first


def _memory(agent: Any) -> Any:
    return plain(agent.memory()) if hasattr(agent, "memory") else None


def _feedback(problem: Any, episode: int, spoiled: bool, rng: np.random.Generator) -> Feedback:
    low, high = problem.reward_range
    usual = np.clip(rng.choice(MAGNITUDES, problem.horizon), max(low, ANY[0]), min(high, ANY[1]))
    if isinstance(problem, TableProblem):
        states: Any = rng.integers(SIZE, size=problem.horizon + 1)
    else:
        states = [_state(problem, rng) for _ in range(problem.horizon + 1)]
    if spoiled:
        where, bad = int(rng.integers(problem.horizon)), TOO_LARGE[int(rng.integers(len(TOO_LARGE)))]
        if isinstance(problem, SimulatorProblem) and rng.random() < 0.5:
            states[where] = _state(problem, rng)
            states[where].values[int(rng.integers(states[where].values.size))] = bad
        else:
            usual[where] = bad
    return Feedback(episode, Trajectory(states, rng.integers(ACTIONS, size=problem.horizon), usual))


def _state(problem: SimulatorProblem, rng: np.random.Generator) -> SparseVector | SparseRows:
    if not problem.joint:
        return SparseVector(np.arange(SIZE), rng.choice(MAGNITUDES, SIZE))
    return SparseRows(
        np.arange(ACTIONS + 1) * SIZE, np.tile(np.arange(SIZE), ACTIONS), rng.choice(MAGNITUDES, SIZE * ACTIONS)
    )

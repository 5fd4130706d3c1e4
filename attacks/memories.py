"""Corrupted memories of agents: each must be rejected without any change, or the agent must keep working."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import belated
from attacks.tally import Tally
from belated.agents._wrapper import ask
from belated.types import Algorithm, Feedback, TablePolicy

Memory = dict[str, npt.NDArray[Any]]
ROUNDS = 20
CHEAP = ("fixed", "epsilon-greedy", "tabular-ucbvi")
"""Algorithms that take a second or two to compile."""


def algorithms() -> dict[str, Algorithm]:
    """Return every registered algorithm, and settings with different arrays."""
    psvi = belated.DelayedPSVI()
    needed: dict[str, dict[str, Any]] = {
        "multi-batch": {"base": psvi},
        "rare-switching": {"base": psvi, "every": 3},
        "qpm-d": {"base": psvi},
        "bold": {"base": psvi},
        "fixed": {"actions": np.zeros((3, 3), np.int64)},
    }
    every: dict[str, Algorithm] = {kind: kept(**needed.get(kind, {})) for kind, kept in belated.AGENTS.items()}
    for kind, kept in belated.AGENTS.items():
        missing = [each.name for each in fields(kept) if each.default is MISSING]
        assert set(missing) <= set(needed.get(kind, {})), f"say here what {kind} needs"
    return {
        **every,
        "lpsvi-preconditioned": belated.DelayedLPSVI(sampler="preconditioned"),
        "lpsvi-collapsed": belated.DelayedLPSVI(sampler="collapsed"),
        "ofu-logistic": belated.DelayedOFU(link="logistic"),
        "tabular-ucbvi-lazy": belated.TabularUCBVI(bonus_form="bernstein", updating="lazy"),
    }


def spoiled(values: npt.NDArray[Any]) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield arrays of the same shape and type that cannot result from feedback."""
    if values.dtype.kind == "f":
        wrong: dict[str, Any] = {"huge": 1e300, "negative": -1.0, "nan": np.nan, "infinite": np.inf, "zero": 0.0}
    else:
        wrong = {"huge": 10**12, "largest": 2**63 - 1, "negative": -(10**9), "least": -(2**63), "minus one": -1}
        least, largest = (
            (0, 1) if values.dtype.kind == "b" else (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max)
        )
        wrong = {name: min(max(value, least), largest) for name, value in wrong.items()}
        values = values.astype(np.uint8) if values.dtype.kind == "b" else values
    with np.errstate(over="ignore"):
        for name, value in wrong.items():
            yield f"all {name}", np.full_like(values, value)
            for place, where in (("first", 0), ("last", -1)):
                if values.size:
                    one = values.copy()
                    one.flat[where] = value
                    yield f"{place} {name}", one
        yield "wrong sign", -values
        yield "twice", 2 * values
        yield "reversed", np.ascontiguousarray(values[..., ::-1])
    yield "one more", np.zeros((*values.shape, 1), values.dtype)
    yield "words", np.full(values.shape, "word")


def play(agent: Any, world: belated.FiniteMDP, first: int, rounds: int) -> None:
    """Plan, play and learn, `rounds` times; feedback arrives three rounds late."""
    rng, dynamics = np.random.default_rng(1), np.random.default_rng(2)
    late: list[Feedback] = []
    for k in range(first, first + rounds):
        start = world.first_state(dynamics)
        actions = ask(agent, rng, start).actions
        assert actions.min() >= 0, "an action that does not exist"
        assert actions.max() < world.actions, "an action that does not exist"
        late.append(Feedback(k, world.rollout(TablePolicy(actions), dynamics, start=start)))
        if len(late) > 3:
            agent.learn([late.pop(0)])


def attack(tries: int, folder: Path, rng: np.random.Generator, tally: Tally) -> None:
    """Spoil every array of every algorithm, those that compile least first."""
    refused = lived = 0
    for kind, algorithm in sorted(algorithms().items(), key=lambda item: item[0] not in CHEAP):
        if kind == "random":
            continue  # it keeps nothing
        horizon = 1 if getattr(algorithm, "one_step", False) else 3
        world = belated.RandomLinearMDP(states=3, actions=2, dimension=3, horizon=horizon, seed=1, bernoulli=True)
        whole: Any = algorithm.start(world.problem)
        play(whole, world, 0, 12)
        memory: Memory = {name: np.array(values) for name, values in whole.memory().items()}
        for name, values in memory.items():
            for how, wrong in spoiled(values):
                if refused + lived == tries or not tally.left():
                    tally.notes.append(f"{refused} refused, {lived} lived")
                    return
                with tally.attempt(f"{kind}: memory[{name!r}] {how}"):
                    taken = survives(algorithm, world, {**memory, name: wrong})
                    lived += taken
                    refused += not taken
    tally.notes.append(f"{refused} refused, {lived} lived")


def survives(algorithm: Algorithm, world: belated.FiniteMDP, memory: Memory) -> bool:
    """Continue with a memory if it is accepted; return whether it was. A rejection must change nothing."""
    agent: Any = algorithm.start(world.problem)
    try:
        agent.restore(memory)
    except belated.InvalidInputError as error:
        assert "memory" in str(error), f"a sentence that does not say where: {error}"
        before = algorithm.start(world.problem).memory()  # type: ignore[attr-defined]
        for key, kept in agent.memory().items():
            assert np.array_equal(kept, before[key]), f"a refused memory changed {key!r}"
        return False
    with contextlib.suppress(belated.InvalidInputError):  # such as action values that are not numbers
        play(agent, world, 12, ROUNDS)
    return True

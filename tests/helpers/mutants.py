"""Restores agents from spoiled memories and plays on: each must be refused, or live.

Run as a program, since a kernel that trusts what it should not may take the whole process with it. Prints a line before
each memory, so that the last one names the culprit, and at the end how many were refused and how many lived.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
import numpy.typing as npt

import belated
from belated.algorithms.around import ask
from belated.types import Algorithm, Feedback, Policy

Memory = dict[str, npt.NDArray[Any]]
ROUNDS = 20


def algorithms() -> dict[str, Algorithm]:
    """Return every algorithm of the registry, and those settings that keep other arrays."""
    psvi = belated.DelayedPSVI()
    needed: dict[str, dict[str, Any]] = {
        "multi-batch": {"base": psvi},
        "rare-switching": {"base": psvi, "every": 3},
        "qpm-d": {"base": psvi},
        "bold": {"base": psvi},
        "fixed": {"actions": np.zeros((3, 3), np.int64)},
    }
    every: dict[str, Algorithm] = {kind: kept(**needed.get(kind, {})) for kind, kept in belated.ALGORITHMS.items()}
    for kind, kept in belated.ALGORITHMS.items():
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
    """Yield arrays of the same shape and type that no feedback would have left."""
    if values.dtype.kind == "f":
        wrong: dict[str, Any] = {"huge": 1e300, "negative": -1.0, "nan": np.nan, "infinite": np.inf, "zero": 0.0}
    else:
        wrong = {"huge": 10**12, "largest": 2**63 - 1, "negative": -(10**9), "least": -(2**63), "minus one": -1}
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
        late.append(Feedback(k, world.rollout(Policy(actions), dynamics, start=start)))
        if len(late) > 3:
            agent.learn([late.pop(0)])


def main() -> None:
    """Spoil every array of every algorithm."""
    refused = lived = 0
    for kind, algorithm in algorithms().items():
        horizon = 1 if getattr(algorithm, "one_step", False) else 3
        world = belated.RandomLinearMDP(states=3, actions=2, dimension=3, horizon=horizon, seed=1, bernoulli=True)
        if kind == "random":
            continue  # it keeps nothing
        whole: Any = algorithm.start(world.problem)
        play(whole, world, 0, 12)
        memory: Memory = {name: np.array(values) for name, values in whole.memory().items()}
        for name, values in memory.items():
            for how, wrong in spoiled(values):
                print(f"{kind}: memory[{name!r}] {how}", flush=True)
                agent: Any = algorithm.start(world.problem)
                try:
                    agent.restore({**memory, name: wrong})
                except belated.InvalidInputError as error:
                    assert "memory" in str(error), f"a sentence that does not say where: {error}"
                    refused += 1
                    before = algorithm.start(world.problem).memory()  # type: ignore[attr-defined]
                    for key, kept in agent.memory().items():
                        assert np.array_equal(kept, before[key]), f"a refused memory changed {key!r}"
                    continue
                with contextlib.suppress(belated.InvalidInputError):  # such as action values that are not numbers
                    play(agent, world, 12, ROUNDS)
                lived += 1
    print(f"{refused} refused, {lived} lived")


if __name__ == "__main__":
    main()

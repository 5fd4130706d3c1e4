"""What algorithms around another algorithm share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from belated import BOLD, Feedback, Greedy, InvalidInputError, OTFLinTS, RandomPolicy, TablePolicy
from belated.agents._wrapper import ask, describe, part_of
from belated.environments import RiverSwim


class Bare:
    def start(self, problem: Any) -> Any: ...


class Telling(Bare):
    def __repr__(self) -> str:
        return "Telling(7)"


def test_an_algorithm_is_described_by_what_lasts() -> None:
    assert describe(Greedy(ridge=2.0)) == {"algorithm": "greedy", "ridge": 2.0, "shared": False}
    assert describe(Telling()) == "Telling(7)"
    assert describe(Bare()) == describe(Bare()) == f"{__name__}.Bare"


class Asked:
    """Plans the first action for everyone, and notes what it was told."""

    def __init__(self) -> None:
        self.told: list[int | None] = []

    def plan(self, rng: np.random.Generator) -> TablePolicy:
        self.told.append(None)
        return TablePolicy(np.zeros((1, 2), np.int64))

    def learn(self, batch: Sequence[Feedback]) -> None: ...


class Curious(Asked):
    def plan_from(self, rng: np.random.Generator, state: int) -> TablePolicy:
        self.told.append(state)
        return TablePolicy(np.ones((1, 2), np.int64))


def test_the_start_is_told_where_it_is_known_to_whom_it_concerns() -> None:
    rng = np.random.default_rng(0)
    for agent, told in ((Asked(), [None, None]), (Curious(), [None, 1])):
        policies = [ask(agent, rng, state) for state in (None, 1)]
        assert agent.told == told
        assert [policy.act(0, 0) for policy in policies] == [int(state is not None) for state in told]


def test_what_is_no_policy_is_refused() -> None:
    agent: Any = Asked()
    agent.plan = lambda rng: np.zeros((1, 2))
    with pytest.raises(InvalidInputError, match="plan must return a TablePolicy, got ndarray"):
        ask(agent, np.random.default_rng(0), None)


def test_part_of_a_memory_has_names_of_its_own() -> None:
    memory = {"base.a": np.ones(1), "base.base.b": np.zeros(2), "a": np.zeros(3)}
    assert {name: values.size for name, values in part_of(memory, "base.").items()} == {"a": 1, "base.b": 2}


def test_only_agents_that_are_found_again_can_be_loaded() -> None:
    problem = RiverSwim().problem
    agent = Greedy().start(problem)
    assert BOLD(base=Greedy()).can_be_loaded(agent)
    assert not BOLD(base=Bare()).can_be_loaded(agent)
    assert not BOLD(base=Greedy()).can_be_loaded(Asked())


def test_around_says_whether_its_base_is_for_bandits() -> None:
    assert [BOLD(base=base).one_step for base in (OTFLinTS(window=7), RandomPolicy(), Bare())] == [True, False, False]

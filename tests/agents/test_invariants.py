"""No memory, whoever wrote it, can take the process down: it is refused, or the agent lives on."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

import belated
from attacks.apart import attack_apart
from belated.agents import _invariants as invariants
from belated.errors import InvalidInputError
from belated.types import TableProblem


@pytest.mark.slow
def test_every_spoiled_memory_is_refused_or_lived_with(tmp_path: Path) -> None:
    outcome = attack_apart("memories", 10**6, 480, 0, tmp_path)
    assert outcome.broken == 0, outcome.details
    (told,) = outcome.notes
    found = re.fullmatch(r"(\d+) refused, (\d+) lived", told)
    assert found is not None, told
    refused, lived = int(found[1]), int(found[2])
    assert refused > lived > 0


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_a_precision_too_large_for_floats_ends_in_words(size: float) -> None:
    agent = belated.DelayedLPSVI().start(belated.RiverSwim(states=2, horizon=2).problem)
    memory = {name: values.copy() for name, values in agent.memory().items()}
    agent.restore({**memory, "precision": size * memory["precision"]})
    with contextlib.suppress(InvalidInputError):
        assert agent.plan(np.random.default_rng(0)).actions.max() < 2


@pytest.mark.parametrize(
    ("array", "value"), [("distinct", 10**12), ("distinct", -(10**9)), ("visited", 10**12), ("visits", -1)]
)
def test_the_list_of_pairs_of_ofu_must_agree_with_its_visits(array: str, value: int) -> None:
    agent = belated.DelayedOFU(link="logistic").start(SMALL)
    memory = {name: values.copy() for name, values in agent.memory().items()}
    memory[array][0] = value
    with pytest.raises(InvalidInputError, match=rf"memory\['{array}'\] must"):
        agent.restore(memory)


def test_matrices() -> None:
    good = np.array([[2.0, 1.0], [0.0, 3.0]])
    invariants.factor("u", good)
    invariants.precision("p", good.T @ good)
    invariants.precision("none", np.zeros((0, 0, 0)))
    falls = [("positive diagonal", good * [[factor], [1.0]]) for factor in (-1.0, -0.01, 0.0)]
    for name, wrong in (*falls, ("zero below the diagonal", good.T)):
        with pytest.raises(InvalidInputError, match=rf"memory\['u'\] must .*{name}"):
            invariants.factor("u", wrong)
    for name, wrong in (("symmetric", good), ("positive definite", np.array([[1.0, 2.0], [2.0, 1.0]]))):
        with pytest.raises(InvalidInputError, match=rf"memory\['p'\] must be {name}"):
            invariants.precision("p", wrong)


def test_sums_of_rewards_lie_within_the_range() -> None:
    problem = TableProblem(np.ones((1, 2, 1)), 1, reward_range=(-1.0, 2.0))
    visits = np.array([3, 0])
    invariants.reward_sums("sums", np.array([6.0, 0.0]), visits, problem)
    invariants.reward_sums("sums", np.array([-3.0, 0.0]), visits, problem)
    for wrong in ([6.1, 0.0], [-3.1, 0.0], [1.0, 0.5]):
        with pytest.raises(InvalidInputError, match=r"memory\['sums'\] must"):
            invariants.reward_sums("sums", np.array(wrong), visits, problem)
    anything = TableProblem(np.ones((1, 2, 1)), 1, reward_range=(-np.inf, np.inf))
    invariants.reward_sums("sums", np.array([1e6, 0.0]), visits, anything)


SMALL = TableProblem(np.ones((1, 2, 2)), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableProblem(np.ones((2, 2, 2)), 10**9), "the table of horizon × states × actions must have at most"),
        (lambda: TableProblem(np.ones((2, 2, 2)), 10**400), "the table of horizon × states × actions must have"),
        (lambda: belated.RiverSwim(horizon=10**9).problem, "horizon must be an integer >= 1 and <= 1000000"),
        (lambda: belated.DelayedPSVI(draws=10**12).start(SMALL), "the draws × d weights"),
        (lambda: belated.DelayedPSVI().start(TableProblem(np.ones((1, 2, 2)), 10**8)), "the factors of horizon × d"),
        (lambda: belated.DelayedPSLB(draws=10**12).start(SMALL), "the draws × d weights"),
        (lambda: belated.DelayedLPSVI(draws=10**12).start(SMALL), "the horizon × draws × d"),
        (lambda: belated.DelayedPHE().start(TableProblem(np.ones((1, 1, 9)), 10**8)), "the moments of horizon"),
        (lambda: belated.TabularUCBVI().start(TableProblem(np.ones((300, 1, 1)), 10**4)), "the counts of horizon"),
        (lambda: belated.DelayedOPPO().start(TableProblem(np.ones((300, 1, 1)), 10**4)), "the counts of horizon"),
        (lambda: belated.OTFLinTS(window=10**12).start(SMALL), "the window must have at most"),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_made(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidInputError, match=f"^{message}"):
        make()

"""Settings of the theorems: for which problems, which they are, and the warning that comes with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from belated import (
    DelayedLPSVI,
    DelayedPSVI,
    InvalidInputError,
    RandomLinearMDP,
    SyntheticLinearMDP,
    TableProblem,
    theory,
)
from belated.agents._pslb import DelayedPSLB
from belated.theory import ConservativeSettingsWarning

SIZES = (2, 2, 20, 0.1)


WORLD = RandomLinearMDP(states=3, actions=2, dimension=SIZES[0], horizon=SIZES[1], seed=4)


BANDIT = RandomLinearMDP(states=1, actions=4, dimension=3, horizon=1, bernoulli=True)


def test_settings_are_those_of_the_theorems() -> None:
    K, delta = SIZES[2:]
    with pytest.warns(
        ConservativeSettingsWarning, match=r"M = 469 draws and ν = 651: .*about 1e\+05 times.* H = 2"
    ) as seen:
        psvi = DelayedPSVI.from_theory(WORLD.problem, K, delta)
    assert seen[0].filename == __file__
    assert psvi == DelayedPSVI(draws=469, scale=theory.psvi_concentration(*SIZES).value, noise=1.0, ridge=1.0)
    with pytest.warns(ConservativeSettingsWarning, match="M = 469 chains of N = 536 steps and √γ = 2.7") as seen:
        lpsvi = DelayedLPSVI.from_theory(WORLD.problem, K, delta)
    assert seen[0].filename == __file__
    assert lpsvi == DelayedLPSVI(
        draws=469,
        steps=536,
        temperature=theory.temperature(*SIZES),
        step_ratio=0.25,
        sampler="collapsed",
        warm_start="cold",
    )
    assert issubclass(ConservativeSettingsWarning, UserWarning)
    assert theory.chain_length(*SIZES).steps == 536


def test_settings_of_a_bandit_are_those_of_the_corollary() -> None:
    with pytest.warns(ConservativeSettingsWarning, match=r"M = 527 draws and ν = 4\.0.*H = 1") as seen:
        found = DelayedPSLB.from_theory(BANDIT.problem, 100, 0.1, reward_noise=0.5)
    assert seen[0].filename == __file__
    # M = log(4·100/0.1)/log(64/63), ν = B√(2[(d/2) log(T + 1) + log(4/δ)]) + √d
    width = 0.5 * math.sqrt(2 * (1.5 * math.log(101) + math.log(40))) + math.sqrt(3)
    assert found.scale == pytest.approx(width)
    assert found == DelayedPSLB(draws=527, scale=found.scale, noise=1.0, ridge=1.0)
    with pytest.raises(InvalidInputError, match="horizon must be 1, since Delayed-PSLB is for bandits, got 2"):
        DelayedPSLB.from_theory(WORLD.problem, 100, 0.1)


def test_problems_outside_the_theorems_are_refused() -> None:
    problem = SyntheticLinearMDP().problem
    assert np.linalg.norm(problem.features, axis=-1).max() > 1
    for made in (DelayedPSVI, DelayedLPSVI, DelayedPSLB):
        with pytest.raises(InvalidInputError, match="features must have norm at most 1"):
            made.from_theory(problem, 10, 0.1)
        with pytest.raises(InvalidInputError, match="problem must be a Problem"):
            made.from_theory(WORLD, 10, 0.1)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="delta"):
            made.from_theory(TableProblem([[[1.0]]], 1), 10, 1.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="episodes"):
            made.from_theory(TableProblem([[[1.0]]], 1), 0, 0.5)  # type: ignore[arg-type]

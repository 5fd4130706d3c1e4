"""What the theorems promise, on problems small enough to see it: optimism, the event E, and regret."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from belated import DelayedLPSVI, DelayedPSVI, Feedback, Poisson, RandomLinearMDP, simulate, theory
from belated.theory import ConservativeSettingsWarning
from belated_studies.lemmas.watch import Watched, watch

SIZES = (2, 2, 20, 0.1)
WORLD = RandomLinearMDP(states=3, actions=2, dimension=SIZES[0], horizon=SIZES[1], seed=4)


def run(draws: int, scale: float, seed: int) -> Watched:
    return watch(WORLD, DelayedPSVI(draws=draws, scale=scale), Poisson(3), episodes=SIZES[2], seed=seed)


def test_optimism_and_the_event_hold_as_often_as_promised() -> None:
    """Lemma "Optimism" promises 1 - δ/2; the event E, here even without the cap at H - h, 1 - δ/4."""
    _, H, K, delta = SIZES
    draws, width = theory.rounds(delta, H, K), theory.psvi_concentration(*SIZES).value
    beta, runs = theory.psvi_beta(*SIZES), 30
    results = [run(draws, width, seed) for seed in range(runs)]
    assert np.mean([each.gap >= 0 for each in results]) >= 1 - delta / 2
    assert np.mean([each.deviation <= beta for each in results]) >= 1 - delta / 4
    # β is not idle: the draws alone go beyond a quarter of it.
    assert max(each.deviation for each in results) > beta / 4


def test_without_width_there_is_no_optimism() -> None:
    draws = theory.rounds(SIZES[3], *SIZES[1:3])
    assert not any(run(draws, 0.0, seed).gap >= 0 for seed in range(5))


def test_the_agent_of_the_library_is_optimistic_with_the_settings_of_the_theorems() -> None:
    episodes, delta = SIZES[2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConservativeSettingsWarning)
        settings = [made.from_theory(WORLD.problem, episodes, delta) for made in (DelayedPSVI, DelayedLPSVI)]
    for each in settings:
        agent, rng = each.start(WORLD.problem), np.random.default_rng(0)
        for episode in range(episodes):
            policy = agent.plan(rng)
            assert (agent.record.work.values >= WORLD.optimal_values()).all()
            agent.learn([Feedback(episode, WORLD.rollout(policy, rng))])


def test_measured_regret_is_below_the_bound_of_the_theorem() -> None:
    world, distribution, episodes, delta = RandomLinearMDP(seed=1), Poisson(5), 300, 0.1
    rows = simulate(world, DelayedPSVI(scale=1.0), distribution, episodes=episodes, seed=0)
    regret = rows["regret"][-1]
    bound = theory.psvi_regret_bound(world.dimension, world.horizon, episodes, delta, distribution)
    assert 0 < regret <= bound.total
    # A tuned agent beats the terms that do not depend on β, which the whole bound exceeds by far.
    assert regret <= bound.transitions


def test_regret_bounds_by_hand() -> None:
    d, H, K, delta, distribution = 3, 4, 50, 0.1, Poisson(6)
    log, term = math.log(53 / 3), theory.delay_term(distribution, H, K, delta)
    for bound, beta in [
        (theory.psvi_regret_bound(d, H, K, delta, distribution), theory.psvi_beta(d, H, K, delta)),
        (theory.lpsvi_regret_bound(d, H, K, delta, distribution), theory.lpsvi_beta(d, H, K, delta)),
    ]:
        assert bound.transitions == pytest.approx(math.sqrt(2 * H**2 * (H * K) * math.log(80)))
        assert bound.learning == pytest.approx(beta * H * math.sqrt(2 * d * K * log))
        assert bound.delay == pytest.approx(beta * d * H * term * log)
        assert bound.net == pytest.approx(4 / 2500)
        assert bound.total == pytest.approx(bound.transitions + bound.learning + bound.delay + bound.net)


def test_the_bandit_bound_by_hand() -> None:
    d, T, delta, distribution, noise = 2, 100, 0.1, Poisson(6), 0.5
    M = theory.rounds(delta, 1, T)
    nu = noise * math.sqrt(2 * (math.log(101) + math.log(40))) + math.sqrt(2)
    log_cd = 2 * math.log(1 + (8 * nu * math.sqrt(2 * math.log(160)) + 8 * math.sqrt(2)) * 10**6)
    beta = nu * math.sqrt(2 * (math.log(16 * M * T / delta) + log_cd))
    beta += noise * math.sqrt(2 * (math.log(101) + math.log(80))) + math.sqrt(2)
    bound = theory.bandit_regret_bound(d, T, delta, distribution, noise)
    assert bound.transitions == 0.0
    assert bound.learning == pytest.approx(beta * math.sqrt(4 * T * math.log(51)))
    assert bound.delay == pytest.approx(beta * 2 * theory.delay_term(distribution, 1, T, delta) * math.log(51))
    assert bound.net == pytest.approx(1e-4)


def test_regret_grows_as_the_root_of_episodes_and_in_proportion_to_delay() -> None:
    few, many = (theory.psvi_regret_bound(3, 4, k, 0.1, Poisson(6)).learning for k in (10**6, 10**8))
    assert 10 < many / few < 20  # 10, and logarithms
    short, long = (theory.psvi_regret_bound(3, 4, 100, 0.1, Poisson(m)).delay for m in (1e4, 1e6))
    assert long / short == pytest.approx(100, rel=0.1)

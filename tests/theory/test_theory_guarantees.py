"""What the theorems promise, on problems small enough to see it: optimism, the event E, and regret."""

from __future__ import annotations

import math
import warnings

import numpy as np
import numpy.typing as npt
import pytest
from naive import NaiveAgent, Regression

from belated import (
    DelayedLPSVI,
    DelayedPSVI,
    Feedback,
    InvalidInputError,
    Poisson,
    Policy,
    Problem,
    RandomLinearMDP,
    SyntheticLinearMDP,
    simulate,
    theory,
)
from belated.theory import ConservativeSettingsWarning

Floats = npt.NDArray[np.float64]

SIZES = (2, 2, 20, 0.1)
WORLD = RandomLinearMDP(states=3, actions=2, dimension=SIZES[0], horizon=SIZES[1], seed=4)


class Watched(NaiveAgent):
    """Delayed-PSVI in plain NumPy that keeps its action values before the cap, for all steps of the last plan."""

    def __init__(self, draws: int, scale: float) -> None:
        super().__init__(WORLD.features, WORLD.horizon)
        self.draws, self.scale = draws, scale
        self.q: Floats = np.zeros((WORLD.horizon, WORLD.states, WORLD.actions))

    def action_values(self, episode: int, h: int, regression: Regression, rng: np.random.Generator) -> Floats:
        root = np.linalg.inv(np.linalg.cholesky(regression.precision))
        weights = regression.mean() + self.scale * rng.standard_normal((self.draws, self.dimension)) @ root
        q: Floats = (self.features @ weights.T).max(axis=-1)
        self.q[h] = q
        return q


def run(draws: int, scale: float, seed: int) -> tuple[bool, float]:
    """Return whether Q >= Q* always, and the largest (|Q - (r + PV)| - 1/K³)/‖φ‖_{Ω⁻¹}, over K episodes."""
    rng = np.random.default_rng(seed)
    episodes = SIZES[2]
    delays = Poisson(3).sample(rng, episodes)
    best = WORLD.rewards + np.einsum("hsat,ht->hsa", WORLD.transitions, WORLD.optimal_values()[1:])
    agent, optimistic, deviation = Watched(draws, scale), True, 0.0
    for episode in range(episodes):
        policy = agent.plan(episode, rng)
        optimistic &= bool((agent.q >= best).all())
        backup = WORLD.rewards + np.einsum("hsat,ht->hsa", WORLD.transitions, agent.values[1:])
        widths = np.sqrt(np.einsum("sai,hij,saj->hsa", WORLD.features, np.linalg.inv(agent.precision), WORLD.features))
        deviation = max(deviation, float(((np.abs(agent.q - backup) - 1 / episodes**3) / widths).max()))
        played = WORLD.rollout(Policy(policy), rng)
        agent.observe(episode, int(delays[episode]), played.states, played.actions, played.rewards)
    return optimistic, deviation


def test_optimism_and_the_event_hold_as_often_as_promised() -> None:
    """Lemma "Optimism" promises 1 - δ/2; the event E, here even without the cap at H - h, 1 - δ/4."""
    _, H, K, delta = SIZES
    draws, width = theory.rounds(delta, H, K), theory.psvi_concentration(*SIZES).value
    beta, runs = theory.psvi_beta(*SIZES), 30
    results = [run(draws, width, seed) for seed in range(runs)]
    assert np.mean([optimistic for optimistic, _ in results]) >= 1 - delta / 2
    assert np.mean([deviation <= beta for _, deviation in results]) >= 1 - delta / 4
    # β is not idle: the draws alone go beyond a quarter of it.
    assert max(deviation for _, deviation in results) > beta / 4


def test_without_width_there_is_no_optimism() -> None:
    draws = theory.rounds(SIZES[3], *SIZES[1:3])
    assert not any(run(draws, 0.0, seed)[0] for seed in range(5))


def test_the_agent_of_the_library_is_optimistic_with_the_settings_of_the_theorems() -> None:
    episodes, delta = SIZES[2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConservativeSettingsWarning)
        settings = [
            make(WORLD.problem, episodes, delta) for make in (theory.psvi_from_theory, theory.lpsvi_from_theory)
        ]
    for each in settings:
        agent, rng = each.start(WORLD.problem), np.random.default_rng(0)
        for episode in range(episodes):
            policy = agent.plan(rng)
            assert (agent.record.work.values >= WORLD.optimal_values()).all()
            agent.learn([Feedback(episode, WORLD.rollout(policy, rng))])


def test_measured_regret_is_below_the_bound_of_the_theorem() -> None:
    world, law, episodes, delta = RandomLinearMDP(seed=1), Poisson(5), 300, 0.1
    rows = simulate(world, DelayedPSVI(scale=1.0), law, episodes=episodes, seed=0)
    regret = float((rows["optimal"] - rows["value"]).sum())
    bound = theory.psvi_regret_bound(world.dimension, world.horizon, episodes, delta, law)
    assert 0 < regret <= bound.total
    # A tuned agent beats the terms that do not depend on β, which the whole bound exceeds by far.
    assert regret <= bound.transitions


def test_regret_bounds_by_hand() -> None:
    d, H, K, delta, law = 3, 4, 50, 0.1, Poisson(6)
    log, term = math.log(53 / 3), theory.delay_term(law, H, K, delta)
    for bound, beta in [
        (theory.psvi_regret_bound(d, H, K, delta, law), theory.psvi_beta(d, H, K, delta)),
        (theory.lpsvi_regret_bound(d, H, K, delta, law), theory.lpsvi_beta(d, H, K, delta)),
    ]:
        assert bound.transitions == pytest.approx(math.sqrt(2 * H**2 * (H * K) * math.log(80)))
        assert bound.learning == pytest.approx(beta * H * math.sqrt(2 * d * K * log))
        assert bound.delay == pytest.approx(beta * d * H * term * log)
        assert bound.net == pytest.approx(4 / 2500)
        assert bound.total == pytest.approx(bound.transitions + bound.learning + bound.delay + bound.net)


def test_the_bandit_bound_by_hand() -> None:
    d, T, delta, law, noise = 2, 100, 0.1, Poisson(6), 0.5
    M = theory.rounds(delta, 1, T)
    nu = noise * math.sqrt(2 * (math.log(101) + math.log(40))) + math.sqrt(2)
    log_cd = 2 * math.log(1 + (8 * nu * math.sqrt(2 * math.log(160)) + 8 * math.sqrt(2)) * 10**6)
    beta = nu * math.sqrt(2 * (math.log(16 * M * T / delta) + log_cd))
    beta += noise * math.sqrt(2 * (math.log(101) + math.log(80))) + math.sqrt(2)
    bound = theory.bandit_regret_bound(d, T, delta, law, noise)
    assert bound.transitions == 0.0
    assert bound.learning == pytest.approx(beta * math.sqrt(4 * T * math.log(51)))
    assert bound.delay == pytest.approx(beta * 2 * theory.delay_term(law, 1, T, delta) * math.log(51))
    assert bound.net == pytest.approx(1e-4)


def test_regret_grows_as_the_root_of_episodes_and_in_proportion_to_delay() -> None:
    few, many = (theory.psvi_regret_bound(3, 4, k, 0.1, Poisson(6)).learning for k in (10**6, 10**8))
    assert 10 < many / few < 20  # 10, and logarithms
    short, long = (theory.psvi_regret_bound(3, 4, 100, 0.1, Poisson(m)).delay for m in (1e4, 1e6))
    assert long / short == pytest.approx(100, rel=0.1)


def test_settings_are_those_of_the_theorems() -> None:
    K, delta = SIZES[2:]
    with pytest.warns(
        ConservativeSettingsWarning, match=r"M = 469 draws and ν = 651: .*about 1e\+05 times.* H = 2"
    ) as seen:
        psvi = theory.psvi_from_theory(WORLD.problem, K, delta)
    assert seen[0].filename == __file__
    assert psvi == DelayedPSVI(draws=469, scale=theory.psvi_concentration(*SIZES).value, noise=1.0, ridge=1.0)
    with pytest.warns(ConservativeSettingsWarning, match="M = 469 chains of N = 536 steps and √γ = 2.7"):
        lpsvi = theory.lpsvi_from_theory(WORLD.problem, K, delta)
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


def test_problems_outside_the_theorems_are_refused() -> None:
    problem = SyntheticLinearMDP().problem
    assert np.linalg.norm(problem.features, axis=-1).max() > 1
    for make in (theory.psvi_from_theory, theory.lpsvi_from_theory):
        with pytest.raises(InvalidInputError, match="features must have norm at most 1"):
            make(problem, 10, 0.1)
        with pytest.raises(InvalidInputError, match="problem must be a Problem"):
            make(WORLD, 10, 0.1)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError, match="delta"):
            make(Problem([[[1.0]]], 1), 10, 1.5)  # type: ignore[arg-type]


def test_the_summary_agrees_with_its_parts() -> None:
    law = Poisson(3)
    found = theory.bounds(*SIZES, law)
    rows = {row.symbol: row.value for row in found.to_rows()}
    assert len(rows) == len(found.to_rows())
    d, H, K, delta = SIZES
    expected = {
        "d": d,
        "H": H,
        "K": K,
        "δ": delta,
        "E[τ]": 3.0,
        "v": math.sqrt(6),
        "b": 1.0,
        "max τ": theory.delay_bound(law, K, delta),
        "max U": theory.missing_bound(law, K, delta),
        "D": theory.delay_term(law, H, K, delta),
        "M": 469,
        "ν": theory.psvi_concentration(*SIZES).value,
        "n": theory.psvi_concentration(*SIZES).iterations,
        "C_w": theory.weight_bound(d, H, K, 469, delta / 4, theory.psvi_concentration(*SIZES).value),
        "β": theory.psvi_beta(*SIZES),
        "Σ‖φ‖²": theory.potential_bound(d, K),
        "Σ‖φ‖": theory.delayed_error_bound(*SIZES, law),
        "R₁": theory.psvi_regret_bound(*SIZES, law).total,
        "R₁ (τ)": theory.psvi_regret_bound(*SIZES, law).delay,
        "γ": theory.temperature(*SIZES),
        "n_γ": theory.lpsvi_concentration(*SIZES).iterations,
        "κ": 21.0,
        "η": 1 / 84,
        "N₁": theory.chain_length(*SIZES).optimism,
        "N₂": theory.chain_length(*SIZES).spread,
        "N₃": theory.chain_length(*SIZES).accuracy,
        "N": 536,
        "β_L": theory.lpsvi_beta(*SIZES),
        "R₂": theory.lpsvi_regret_bound(*SIZES, law).total,
        "R₂ (τ)": theory.lpsvi_regret_bound(*SIZES, law).delay,
        "R_b": theory.bandit_regret_bound(d, K, delta, law).total,
        "HK": 40,
    }
    assert rows == expected
    lines = found.table().splitlines()
    assert len(lines) == len(rows)
    assert len({len(line) for line in lines}) == 1
    assert lines[-1].split() == ["HK", "largest", "regret", "there", "can", "be", "40"]

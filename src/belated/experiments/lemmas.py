"""What the lemmas and theorems claim, measured on problems small enough to see it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from belated import theory
from belated.algorithms import DelayedLPSVI, DelayedPSVI
from belated.algorithms.agent import Learner
from belated.algorithms.pslb import DelayedPSLB
from belated.delays import NEVER, DelayBuffer, DelayLaw, Geometric, Multinomial, Poisson
from belated.environments import FiniteMDP, RandomLinearMDP
from belated.planning import TIE
from belated.posterior.langevin import chain
from belated.rng import stream
from belated.runner import simulate
from belated.theory import ConservativeSettingsWarning
from belated.types import Feedback, Floats, Ints, Policy, Trajectory

DELTA = 0.1


@dataclass(frozen=True)
class Check:
    """One claim beside what was measured of it."""

    lemma: str
    claim: str
    case: str
    bound: float
    measured: float
    """The worst of all runs."""
    share: float
    """Of the runs, the part in which the claim held."""
    promised: float
    """The part in which it should."""
    applies: bool
    """Whether the settings are those for which it is proved."""

    @property
    def holds(self) -> bool:
        """Whether the claim held as often as promised."""
        return self.share >= self.promised


class Curve(NamedTuple):
    """Something measured, or a bound, against something else."""

    name: str
    x: Floats
    y: Floats
    dashed: bool = False


class Part(NamedTuple):
    """What one part of the study found."""

    checks: list[Check]
    curves: list[Curve]


def check(
    lemma: str,
    claim: str,
    case: str,
    *,
    bound: float,
    runs: Floats,
    promised: float = 1.0,
    at_least: bool = False,
    applies: bool = True,
) -> Check:
    """Compare what each of `runs` measured with `bound`, which it should not exceed, or reach if `at_least`."""
    held = runs >= bound if at_least else runs <= bound
    worst = runs.min() if at_least else runs.max()
    return Check(lemma, claim, case, float(bound), float(worst), float(held.mean()), promised, applies)


# What is measured.


class Plan(NamedTuple):
    """A plan with all its action values."""

    policy: Policy
    q: Floats
    """Q_h(s, a) before the cap, shape (H, S, A)."""
    values: Floats
    """V_h(s), shape (H+1, S)."""


def plan(agent: Learner, rng: np.random.Generator) -> Plan:
    """Plan as `agent.plan(rng)` does, number for number, but keep the action values."""
    features, horizon = agent.problem.features, agent.problem.horizon
    states, actions, _ = features.shape
    learned = agent.record.learned
    q, values = np.zeros((horizon, states, actions)), np.zeros((horizon + 1, states))
    policy = np.zeros((horizon, states), dtype=np.int64)
    for h in range(horizon - 1, -1, -1):
        moment = learned.reward_moment[h] + values[h + 1] @ learned.next_moment[h]
        q[h] = (features @ _weights(agent, h, moment, rng).T).max(axis=-1)
        for s in range(states):
            best = values[h, s] = min(q[h, s].max(), horizon - h)
            ties = np.flatnonzero(q[h, s] >= best - TIE * max(1.0, abs(best)))
            policy[h, s] = ties[int(rng.random() * ties.size)] if ties.size > 1 else ties[0]
    return Plan(Policy(policy), q, values)


def _weights(agent: Learner, h: int, moment: Floats, rng: np.random.Generator) -> Floats:
    """Return the M weight vectors drawn at step h, shape (M, d)."""
    settings, learned = agent.settings, agent.record.learned
    assert isinstance(settings, DelayedPSVI | DelayedLPSVI)
    normal = rng.standard_normal((settings.draws, moment.size))
    drawn: Floats
    if isinstance(settings, DelayedPSVI):
        factor = learned.factor[h]
        half = np.linalg.solve(factor.T, moment)  # w = U⁻¹(u + νz), u = U⁻ᵀΦy/σ²
        drawn = np.linalg.solve(factor, (half + settings.scale * normal).T).T
        return drawn
    assert (settings.sampler, settings.warm_start, settings.step_size) == ("collapsed", "cold", None)
    eigenvalues, vectors = np.linalg.eigh(learned.precision[h])
    contraction = 1 - 2 * settings.step_ratio * eigenvalues / eigenvalues[-1]  # A = I − 2ηΩ
    kept = contraction**settings.steps
    mean = (1 - kept) * (moment @ vectors) / eigenvalues
    variance = settings.temperature * (1 - kept**2) / (eigenvalues * (1 + contraction))  # Θ
    drawn = (mean + np.sqrt(variance) * normal) @ vectors.T
    return drawn


def precisions(agent: Learner) -> Floats:
    """Return Ω_h of all steps, shape (H, d, d)."""
    learned = agent.record.learned
    omega: Floats = (
        np.swapaxes(learned.factor, 1, 2) @ learned.factor if learned.factor.size else np.array(learned.precision)
    )
    return omega


@dataclass(frozen=True, eq=False)
class Watched:
    """A run of an agent whose every action value was looked at."""

    gap: float
    """The least Q − Q* of all states, actions, steps and episodes: at least 0 if all are optimistic."""
    optimistic: float
    """Of all states, actions, steps and episodes, the part with Q >= Q*."""
    deviation: float
    """The largest (|Q − (r + PV)| − 1/K³)/‖φ‖_{Ω⁻¹}, which the event E keeps below β."""
    regret: float
    features: Floats
    """φ of the pairs that were visited, shape (K, H, d)."""
    delays: Ints
    precisions: Floats
    """Ω_h at the end, shape (H, d, d)."""


def watch(
    world: FiniteMDP, settings: DelayedPSVI | DelayedLPSVI, delay: DelayLaw, *, episodes: int, seed: int
) -> Watched:
    """Play the same run as `simulate`, looking at every plan."""
    rngs = {name: stream(seed, name) for name in ("delay", "environment", "agent")}
    delays = delay.sample(rngs["delay"], episodes)
    buffer: DelayBuffer[Trajectory] = DelayBuffer()
    agent, optimal = settings.start(world.problem), world.optimal_values()
    best = world.rewards + np.einsum("hsat,ht->hsa", world.transitions, optimal[1:])
    gap, optimistic, deviation, regret = np.inf, 0.0, 0.0, 0.0
    visited = np.zeros((episodes, world.horizon, world.dimension))
    for episode in range(episodes):
        agent.learn([Feedback(*late) for late in buffer.arrived(episode)])
        start = world.first_state(rngs["environment"], episode=episode)
        found = plan(agent, rngs["agent"])
        gap = min(gap, float((found.q - best).min()))
        optimistic += float((found.q >= best).mean()) / episodes
        backup = world.rewards + np.einsum("hsat,ht->hsa", world.transitions, found.values[1:])
        inverse = np.linalg.inv(precisions(agent))
        norms = np.sqrt(np.einsum("sai,hij,saj->hsa", world.features, inverse, world.features))
        deviation = max(deviation, float(((np.abs(found.q - backup) - episodes**-3.0) / norms).max()))
        regret += float(optimal[0, start] - world.values(found.policy)[0, start])
        played = world.rollout(found.policy, rngs["environment"], episode=episode, start=start)
        visited[episode] = world.features[played.states[:-1], played.actions]
        buffer.add(episode, int(delays[episode]), played)
    return Watched(gap, optimistic, deviation, regret, visited, delays, precisions(agent))


def covariance_ratios(precision: Floats, steps: int) -> tuple[float, float]:
    """Return the least and the largest eigenvalue of Ω^½ΘΩ^½/γ, from the law of a chain of N steps with η = 1/(4λ_max).

    Θ = γ(I − A²ᴺ)Ω⁻¹(I + A)⁻¹ with A = I − 2ηΩ; all of them have the eigenvectors of Ω.
    """
    eigenvalues = np.linalg.eigvalsh(precision)
    contraction = 1 - 0.5 * eigenvalues / eigenvalues[-1]
    ratios = (1 - contraction ** (2 * steps)) / (1 + contraction)
    return float(ratios.min()), float(ratios.max())


def chain_error(precision: Floats, steps: int, *, chains: int, rng: np.random.Generator) -> float:
    """Return how far the covariance S of `chains` chains is from Θ: the largest |eigenvalue of Θ^-½SΘ^-½ − 1|."""
    d, step = len(precision), theory.step_size(precision)
    ends, moment, work = np.zeros((chains, d)), np.zeros(d), np.zeros(d)  # from w₀ = 0 towards ŵ = 0
    for end in ends:
        chain(precision, moment, step, 1.0, steps, rng, end, work)
    eigenvalues, vectors = np.linalg.eigh(precision)
    contraction = 1 - 2 * step * eigenvalues
    whitened = ends @ vectors / np.sqrt((1 - contraction ** (2 * steps)) / (eigenvalues * (1 + contraction)))
    return float(np.abs(np.linalg.eigvalsh(whitened.T @ whitened / chains) - 1).max())


def sampling_error(d: int, chains: int, delta: float) -> float:
    """Return what `chain_error` of independent Gaussian draws does not exceed, with probability 1 − δ.

    The singular values of n × d standard normals over √n are within 1 ± (√(d/n) + t), each side with probability
    1 − exp(−nt²/2) (Davidson and Szarek).
    """
    return float((1 + np.sqrt(d / chains) + np.sqrt(2 * np.log(2 / delta) / chains)) ** 2 - 1)


def lower_ratio(precision: Floats, steps: int) -> float:
    """Return ½(1 − (1 − 1/(2κ))²ᴺ), below which no ratio may fall."""
    kappa = theory.condition_number(precision)
    return float(-np.expm1(2 * steps * np.log1p(-0.5 / kappa)) / 2)


def delayed_norms(features: Floats, arrival: Ints) -> Floats:
    """Return ‖φ_k‖ in the norm of Ω_k⁻¹, where Ω_k = I + the sum of φφᵀ over the t with arrival[t] < k."""
    episodes, d = features.shape
    order, waiting = np.argsort(arrival, kind="stable"), 0
    omega, found = np.eye(d), np.zeros(episodes)
    for k in range(episodes):
        while waiting < episodes and arrival[order[waiting]] < k:
            omega += np.outer(features[order[waiting]], features[order[waiting]])
            waiting += 1
        found[k] = np.sqrt(features[k] @ np.linalg.solve(omega, features[k]))
    return found


def under_way(delays: Ints) -> Ints:
    """Return U_k of each run (row): how many of the episodes 0..k have not arrived at the end of episode k."""
    runs, episodes = delays.shape
    arrived = np.zeros((runs, episodes), dtype=np.int64)
    late = np.minimum(delays, episodes) + np.arange(episodes)  # beyond the end is all the same, and NEVER is too
    run, sent = np.nonzero(late < episodes)
    np.add.at(arrived, (run, late[run, sent]), 1)
    missing: Ints = np.arange(1, episodes + 1) - np.cumsum(arrived, axis=1)
    return missing


def uniform_values(world: FiniteMDP) -> Floats:
    """Return V_h(s) of actions that are drawn uniformly, shape (H+1, S)."""
    values = np.zeros((world.horizon + 1, world.states))
    for h in range(world.horizon - 1, -1, -1):
        values[h] = (world.rewards[h] + world.transitions[h] @ values[h + 1]).mean(axis=1)
    return values


def measured_bounds(rows: pl.DataFrame, horizon: int) -> dict[str, float]:
    """Return what one run measured of the quantities that the theorems bound, by their symbols.

    What depends on every episode is left out where the rows are not of every episode.
    """
    found = dict.fromkeys(("R₁", "R₂", "R_b") if horizon == 1 else ("R₁", "R₂"), float(rows["regret"][-1]))
    if rows.height == rows["episode"][-1] + 1:
        delays = rows["delay"].fill_null(NEVER).to_numpy()
        arrives = delays[delays != NEVER]
        found["E[τ]"] = float(arrives.mean()) if arrives.size else float("inf")
        found["max τ"] = float(delays.max()) if arrives.size == delays.size else float("inf")
        found["max U"] = float(under_way(delays[np.newaxis]).max())
    return found


# The study.

WORLDS = tuple(RandomLinearMDP(states=3, actions=2, dimension=2, horizon=2, seed=seed) for seed in range(4))
SMALL_EPISODES, SMALL_DELAY = 20, Poisson(3)
SMALL_SIZES = (WORLDS[0].dimension, WORLDS[0].horizon, SMALL_EPISODES, DELTA)
SEEDS = range(10)
"""Of each of the worlds."""

PRACTICAL = DelayedPSVI(draws=2, scale=1.0)
NARROW = DelayedPSVI(draws=2, scale=0.2)


@contextmanager
def forewarned() -> Iterator[None]:
    """Take the theorems' settings without the warning that this study is there to explain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConservativeSettingsWarning)
        yield


def watch_all(settings: DelayedPSVI | DelayedLPSVI, seeds: Sequence[int] = SEEDS) -> list[Watched]:
    """Watch `settings` on all small worlds."""
    return [
        watch(world, settings, SMALL_DELAY, episodes=SMALL_EPISODES, seed=seed) for world in WORLDS for seed in seeds
    ]


def optimism() -> Part:
    """Lemmas "Optimism" and "Pointwise concentration", for the theorems' settings and for practical ones."""
    checks = []
    with forewarned():
        exact = DelayedPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
        chains = DelayedLPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
    settings: DelayedPSVI | DelayedLPSVI
    for settings, beta in (
        (exact, theory.psvi_beta(*SMALL_SIZES)),
        (chains, theory.lpsvi_beta(*SMALL_SIZES)),
        (PRACTICAL, None),
        (NARROW, None),
    ):
        runs = watch_all(settings)
        case = _shown(settings)
        checks.append(
            check(
                "Optimism",
                "Q − Q* ≥ 0 for all s, a, h, k",
                case,
                bound=0.0,
                runs=np.array([run.gap for run in runs]),
                promised=1 - DELTA / 2,
                at_least=True,
                applies=beta is not None,
            )
        )
        if beta is not None:
            checks.append(
                check(
                    "Pointwise concentration",
                    "|Q − (r + PV)| ≤ β‖φ‖ + 1/K³",
                    case,
                    bound=beta,
                    runs=np.array([run.deviation for run in runs]),
                    promised=1 - DELTA / 4,
                )
            )
    return Part(checks, [])


def _shown(settings: DelayedPSVI | DelayedLPSVI | DelayedPSLB) -> str:
    if isinstance(settings, DelayedLPSVI):
        return f"chains, M = {settings.draws}, √γ = {np.sqrt(settings.temperature):.3g}, N = {settings.steps}"
    return f"exact draws, M = {settings.draws}, ν = {settings.scale:.3g}"


def widths() -> Part:
    """How wide draws must be to be optimistic, against what the theorem asks for."""
    with forewarned():
        asked = DelayedPSVI.from_theory(WORLDS[0].problem, SMALL_EPISODES, DELTA)
    scales = np.geomspace(0.1, asked.scale, 13)
    curves = []
    for draws in (2, asked.draws):
        runs = [watch_all(DelayedPSVI(draws=draws, scale=float(scale)), range(3)) for scale in scales]
        whole = np.array([np.mean([run.gap >= 0 for run in each]) for each in runs])
        single = np.array([np.mean([run.optimistic for run in each]) for each in runs])
        curves += [
            Curve(f"M = {draws}: runs", scales, whole),
            Curve(f"M = {draws}: single action values", scales, single),
        ]
    return Part([], [*curves, Curve("promised: runs", scales, np.full(scales.size, 1 - DELTA / 2), dashed=True)])


def covariance() -> Part:
    """The sandwich of Θ between ½(1 − (1 − 1/(2κ))²ᴺ)γΩ⁻¹ and γΩ⁻¹."""
    rng = np.random.default_rng(0)
    collected = [
        omega for world in WORLDS for omega in watch(world, PRACTICAL, SMALL_DELAY, episodes=50, seed=0).precisions
    ]
    checks, lengths = [], np.unique(np.geomspace(1, 400, 40).round().astype(np.int64))
    lemma, chains = "Covariance of a chain", 4000
    for steps in (10, 100):
        ratios = np.array([covariance_ratios(omega, steps) for omega in collected])
        lower = np.array([lower_ratio(omega, steps) for omega in collected])
        errors = np.array([chain_error(omega, steps, chains=chains, rng=rng) for omega in collected])
        case = f"N = {steps}"
        checks += [
            check(
                lemma,
                "least eigenvalue of Ω^½ΘΩ^½/γ, over ½(1 − (1 − 1/2κ)²ᴺ) ≥ 1",
                case,
                bound=1.0,
                runs=ratios[:, 0] / lower,
                at_least=True,
            ),
            check(lemma, "largest eigenvalue of Ω^½ΘΩ^½/γ ≤ 1", case, bound=1.0, runs=ratios[:, 1]),
            check(
                lemma,
                "covariance of chains is Θ, but for sampling",
                f"{case}, {chains:,} chains",
                bound=sampling_error(len(collected[0]), chains, DELTA),
                runs=errors,
                promised=1 - DELTA,
            ),
        ]
    worst = max(collected, key=theory.condition_number)
    found = np.array([covariance_ratios(worst, int(n)) for n in lengths])
    x = lengths.astype(np.float64)
    curves = [
        Curve("largest eigenvalue", x, found[:, 1]),
        Curve("least eigenvalue", x, found[:, 0]),
        Curve("lower bound of the lemma", x, np.array([lower_ratio(worst, int(n)) for n in lengths]), dashed=True),
    ]
    return Part(checks, curves)


LAWS: Mapping[str, DelayLaw] = {
    "Poisson": Poisson(20),
    "geometric": Geometric(20),
    "multinomial": Multinomial(categories=[0, 10, 75], probabilities=[0.3, 0.5, 0.2]),
}
MEDIUM = RandomLinearMDP(states=5, actions=3, dimension=3, horizon=4, seed=1)
EPISODES = 500


def potential() -> Part:
    """The elliptical potential, and what delay makes of its root."""
    d, horizon = MEDIUM.dimension, MEDIUM.horizon
    in_turn = np.tile(np.eye(d), (EPISODES // d + 1, 1))[:EPISODES]
    at_once = np.arange(EPISODES)
    undelayed = theory.potential_bound(d, EPISODES)
    checks: list[Check] = []
    for name, law in LAWS.items():
        runs = [watch(MEDIUM, PRACTICAL, law, episodes=EPISODES, seed=seed) for seed in range(2)]
        if not checks:
            played = [run.features[:, h] for run in runs for h in range(horizon)]
            for case, sequences in (("pairs an agent visited", played), ("directions in turn", [in_turn])):
                checks.append(
                    check(
                        "Elliptical potential",
                        "Σ‖φ‖² ≤ 2d log((d + K)/d)",
                        case,
                        bound=undelayed,
                        runs=np.array([float((delayed_norms(each, at_once) ** 2).sum()) for each in sequences]),
                    )
                )
        sums = [
            sum(float(delayed_norms(run.features[:, h], at_once + run.delays).sum()) for h in range(horizon))
            for run in runs
        ]
        checks.append(
            check(
                "Delayed error",
                "Σ‖φ‖ ≤ its bound",
                f"{name} delays of mean {law.mean:g}",
                bound=theory.delayed_error_bound(d, horizon, EPISODES, DELTA, law),
                runs=np.array(sums),
                promised=1 - DELTA / 8,
            )
        )
    return Part(checks, [])


def lateness() -> Part:
    """The longest delay and the most feedback under way."""
    checks, runs = [], 500
    for name, law in LAWS.items():
        delays = law.sample(np.random.default_rng(1), runs * EPISODES).reshape(runs, EPISODES)
        case = f"{name} delays of mean {law.mean:g}"
        for lemma, claim, bound, found in (
            ("Tail of the delays", "max τ ≤ its bound", theory.delay_bound(law, EPISODES, DELTA), delays),
            ("Feedback under way", "max U ≤ its bound", theory.missing_bound(law, EPISODES, DELTA), under_way(delays)),
        ):
            most = found.max(axis=1).astype(np.float64)
            checks.append(check(lemma, claim, case, bound=bound, runs=most, promised=1 - DELTA))
    return Part(checks, [])


BANDIT = RandomLinearMDP(states=1, actions=10, dimension=3, horizon=1, seed=1, bernoulli=True)
BERNOULLI_NOISE = 0.5
"""A variable within [0, 1] is 1/2-sub-Gaussian."""


def regret() -> Part:
    """Theorems 1 and 2 and the corollary on bandits, and agents whose settings are practical."""
    law, seeds = LAWS["Poisson"], range(5)
    sizes = (MEDIUM.dimension, MEDIUM.horizon)

    def psvi_bound(episodes: int) -> float:
        return theory.psvi_regret_bound(*sizes, episodes, DELTA, law).total

    def lpsvi_bound(episodes: int) -> float:
        return theory.lpsvi_regret_bound(*sizes, episodes, DELTA, law).total

    def bandit_bound(episodes: int) -> float:
        return theory.bandit_regret_bound(BANDIT.dimension, episodes, DELTA, law, BERNOULLI_NOISE).total

    with forewarned():
        exact = DelayedPSVI.from_theory(MEDIUM.problem, EPISODES, DELTA)
        chains = DelayedLPSVI.from_theory(MEDIUM.problem, EPISODES, DELTA)
        bandit = DelayedPSLB.from_theory(BANDIT.problem, EPISODES, DELTA, reward_noise=BERNOULLI_NOISE)
    checks, curves = [], []
    settings: DelayedPSVI | DelayedLPSVI | DelayedPSLB
    marks = np.unique(np.geomspace(1, EPISODES, 60).round().astype(np.int64))
    x = marks.astype(np.float64)
    for theorem, world, settings, bound, applies in (
        ("Theorem 1", MEDIUM, exact, psvi_bound, True),
        ("Theorem 2", MEDIUM, chains, lpsvi_bound, True),
        ("Theorem 1", MEDIUM, PRACTICAL, psvi_bound, False),
        ("Bandit corollary", BANDIT, bandit, bandit_bound, True),
    ):
        rows = [simulate(world, settings, law, episodes=EPISODES, seed=seed)["regret"].to_numpy() for seed in seeds]
        checks.append(
            check(
                theorem,
                "regret ≤ its bound",
                _shown(settings),
                bound=bound(EPISODES),
                runs=np.array([each[-1] for each in rows]),
                promised=1 - DELTA,
                applies=applies,
            )
        )
        if settings in (exact, PRACTICAL):
            curves.append(Curve(f"regret: {_shown(settings)}", x, np.mean(rows, axis=0)[marks - 1]))
    aimless = MEDIUM.optimal_value - float(MEDIUM.start @ uniform_values(MEDIUM)[0])
    curves += [
        Curve("regret: uniformly random actions", x, aimless * x, dashed=True),
        Curve("HK, the largest regret there can be", x, MEDIUM.horizon * x, dashed=True),
        Curve("bound of Theorem 1", x, np.array([psvi_bound(int(k)) for k in marks]), dashed=True),
        Curve("bound of Theorem 2", x, np.array([lpsvi_bound(int(k)) for k in marks]), dashed=True),
    ]
    return Part(checks, curves)


PARTS: dict[str, Callable[[], Part]] = {
    "optimism": optimism,
    "widths": widths,
    "covariance": covariance,
    "potential": potential,
    "lateness": lateness,
    "regret": regret,
}

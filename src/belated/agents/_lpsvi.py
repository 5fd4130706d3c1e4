"""Delayed Langevin Posterior Sampling Value Iteration: draws by noisy gradient steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from belated._kernels.gaussian import rank_one_update, solve, solve_transposed
from belated._kernels.jit import allocating_kernel, copy, kernel
from belated._kernels.langevin import (
    KRYLOV,
    chain,
    collapsed_draw,
    largest_eigenvalue,
    preconditioned_chain,
)
from belated._kernels.normals import standard_normals
from belated._kernels.planning import greedy, target_moment
from belated._util.validate import check_room, choice, flag, integer, real
from belated.agents import _invariants as invariants
from belated.agents._base import learns, plans_states
from belated.agents._information import factor_information, informs
from belated.agents._regression import (
    SampledRegression,
    Table,
    Work,
    add_to_moments,
    largest_values,
    make_regression,
    make_table,
    make_work,
    regression_of,
)
from belated.agents._sparse import Regression as SparseRegression
from belated.agents._sparse import WeightRule
from belated.errors import InvalidInputError
from belated.theory._constants import rounds
from belated.theory._langevin import chain_length, temperature
from belated.theory._settings import accepted, warn_of_width
from belated.types import Floats, Ints, Plays, SimulatorProblem, TableProblem

#: How a chain is drawn and where it starts, by name, and the codes that the kernels know them by.
SAMPLERS = ("plain", "collapsed", "preconditioned")
PLAIN, COLLAPSED, PRECONDITIONED = range(3)
WARM_STARTS = ("episode", "step", "cold")
FROM_EPISODE, FROM_STEP, FROM_ZERO = range(3)


@dataclass(frozen=True, kw_only=True)
class DelayedLPSVI(SampledRegression):
    """Delayed-LPSVI (Kuang et al., 2023, Algorithms 2 and 3).

    Like Delayed-PSVI, but each weight vector is the end of N Langevin steps on the regression loss. Three
    samplers:

    * ``"plain"``: the chain as published, O(Nd²) a draw. It does not mix in directions that were rarely
      visited, because it needs about as many steps as the condition number of Ω;
    * ``"collapsed"``: one draw from the exact distribution of that chain after N steps;
    * ``"preconditioned"``: the chain in the metric of Ω⁻¹, which mixes at the same rate everywhere. Recommended.
      With `step_ratio` 0.5 it draws exactly from N(ŵ, γΩ⁻¹): Delayed-PSVI with ν² = γ.

    Examples
    --------
    >>> from belated import RiverSwim
    >>> agent = DelayedLPSVI(sampler="preconditioned", temperature=4.0).start(RiverSwim().problem)
    >>> agent.plan(np.random.default_rng(0)).actions.shape
    (20, 5)
    """

    kind: ClassVar[str] = "lpsvi"

    steps: int = 40
    """N, the number of noisy gradient steps of a chain."""
    temperature: float = 1.0
    """γ: a chain that has mixed draws from N(ŵ, γΩ⁻¹(I + A)⁻¹), between γ/2 (small steps) and γ times Ω⁻¹."""
    step_ratio: float = 0.5
    """c_η: the step size is η = c_η/λ_max(Ω), or c_η itself when preconditioned. Below 1, or it diverges."""
    step_size: float | None = None
    """η; None derives it from `step_ratio`."""
    sampler: str = "plain"
    """How a chain is drawn: "plain", "collapsed" or "preconditioned"."""
    warm_start: str = "episode"
    """Where a chain starts: at the last "episode"'s sample of the same step, at the sample of the "step" above
    in this episode, or "cold" at zero."""
    cap: bool = True
    """Whether action values are capped at the steps that remain, as rewards within [0, 1] allow."""
    shared: bool = False
    """Whether all steps share one regression, for problems whose dynamics and rewards do not depend on the step."""

    @property
    def plays(self) -> Plays:
        return "both"

    def __post_init__(self) -> None:
        """Refuse what is not a setting."""
        super().__post_init__()
        flag("cap", self.cap)
        flag("shared", self.shared)
        integer("steps", self.steps, at_least=1)
        real("temperature", self.temperature, at_least=0)
        real("step_ratio", self.step_ratio, above=0, below=1)
        if self.step_size is not None:
            real("step_size", self.step_size, above=0)
        choice("sampler", self.sampler, SAMPLERS)
        choice("warm_start", self.warm_start, WARM_STARTS)

    @classmethod
    def from_theory(cls, problem: TableProblem, episodes: int, delta: float) -> Self:
        """Return the settings of Theorem 2: λ = 1, σ = 1, η = 1/(4λ_max), w₀ = 0, and its M, γ and N.

        The paper's N_k follows the condition number as data arrive; the settings have one N, that of the largest κ
        there can be. Chains of that length are drawn with the sampler "collapsed", which has the same distribution as the plain
        one and does not walk through the N steps.
        """
        dimension, horizon = accepted(problem)
        draws = rounds(delta, horizon, episodes)
        gamma = temperature(dimension, horizon, episodes, delta)
        steps = chain_length(dimension, horizon, episodes, delta).steps
        width = float(np.sqrt(gamma))
        warn_of_width(f"M = {draws} chains of N = {steps} steps and √γ = {width:.3g}", width, horizon)
        return cls(
            draws=draws,
            steps=steps,
            temperature=gamma,
            step_ratio=0.25,
            noise=1.0,
            ridge=1.0,
            sampler="collapsed",
            warm_start="cold",
        )

    def record(self, problem: TableProblem) -> LPSVIRecord:
        """Return the record of an agent that has seen nothing yet."""
        horizon, d = problem.horizon, problem.dimension
        factor, reward_moment, next_moment = make_regression(problem, float(self.ridge), self.shared)
        count, none = len(factor), np.zeros((0, 0, 0))
        if self.sampler == "preconditioned":
            precision = none
        else:
            precision, factor = np.tile(self.ridge * np.eye(d), (count, 1, 1)), none
        check_room("the horizon × draws × d samples", horizon, self.draws, d)
        samples = np.zeros((horizon, self.draws, d))
        krylov = min(d, KRYLOV)
        spectrum = Spectrum(
            values=np.zeros((count, d)),
            vectors=np.zeros((count, d, d) if self.sampler == "collapsed" else (0, 0, 0)),
            basis=np.zeros((krylov + 1, d)),
            diagonal=np.zeros(krylov),
            off=np.zeros(krylov),
            stale=np.ones(count, dtype=np.bool_),
        )
        return LPSVIRecord(
            table=make_table(problem),
            learned=LPSVILearned(
                precision=precision,
                factor=factor,
                reward_moment=reward_moment,
                next_moment=next_moment,
                samples=samples,
            ),
            work=make_work(problem),
            spectrum=spectrum,
            draws=int(self.draws),
            steps=int(self.steps),
            temperature=float(self.temperature),
            step_ratio=float(self.step_ratio),
            step_size=0.0 if self.step_size is None else float(self.step_size),
            noise=float(self.noise),
            sampler=SAMPLERS.index(self.sampler),
            warm_start=WARM_STARTS.index(self.warm_start),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def weight_rule(self, problem: SimulatorProblem) -> WeightRule:
        return WeightRule(
            draw=self._draw_weights,
            draws=self.draws,
            noise=self.noise,
            ridge=self.ridge,
            shared=self.shared,
            capped=self.cap,
            first=self.ties == "first",
        )

    def _draw_weights(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """wᵐ ← LMC(L_h, w₀, η, N, γ) (line 6)."""
        largest = 1.0 if self.sampler == "preconditioned" else regression.largest_eigenvalue
        step = self.step_ratio / largest if self.step_size is None else self.step_size
        if step * largest >= 1.0:
            raise InvalidInputError("step_size is too large: the Langevin chain diverges unless η·λ_max(Ω) < 1")
        weights = {"episode": last, "step": above, "cold": np.zeros_like(last)}[self.warm_start].copy()
        chain = {"plain": self._plain, "collapsed": self._collapsed, "preconditioned": self._preconditioned}
        for m in range(self.draws):
            weights[m] = chain[self.sampler](regression, moment, step, weights[m], rng)
        return weights

    def _plain(
        self, regression: SparseRegression, moment: Floats, step: float, w: Floats, rng: np.random.Generator
    ) -> Floats:
        amplitude = math.sqrt(2.0 * step * self.temperature)  # √(2ηγ)
        for _ in range(self.steps):
            gradient = 2.0 * (regression.multiply(w) - moment)  # ∇L = 2(Ωw − b)
            w = w + amplitude * standard_normals(rng, w.shape) - step * gradient
        return w

    def _collapsed(
        self, regression: SparseRegression, moment: Floats, step: float, w: Floats, rng: np.random.Generator
    ) -> Floats:
        omega = np.full(w.size, regression.ridge)
        for columns, (values, _) in zip(regression.columns, regression.spectra, strict=True):
            omega[columns] = values
        noise = np.empty(w.size)
        noise[np.argsort(omega, kind="stable")] = standard_normals(rng, w.shape)  # in the order of the eigenvalues
        contraction = 1.0 - 2.0 * step * omega
        kept = contraction**self.steps
        width = np.sqrt(self.temperature * (1.0 - kept**2) / (omega * (1.0 + contraction)))  # of Θ
        rotated = regression.rotate(w, back=False), regression.rotate(moment, back=False)
        return regression.rotate(kept * rotated[0] + (1.0 - kept) * rotated[1] / omega + width * noise, back=True)

    def _preconditioned(
        self, regression: SparseRegression, moment: Floats, step: float, w: Floats, rng: np.random.Generator
    ) -> Floats:
        contraction, noise = 1.0 - 2.0 * step, np.zeros(w.size)
        for _ in range(self.steps):
            noise = contraction * noise + standard_normals(rng, w.shape)
        kept, amplitude = contraction**self.steps, math.sqrt(2.0 * step * self.temperature)
        return kept * w + (1.0 - kept) * regression.mean(moment) + amplitude * regression.solve(noise)

    def check_learned(self, learned: LPSVILearned, problem: TableProblem) -> None:
        """Require positive definite matrices, or factors with a positive diagonal; what is not kept is empty."""
        invariants.precision("precision", learned.precision)
        invariants.factor("factor", learned.factor)


class LPSVILearned(NamedTuple):
    """What feedback and the chains change."""

    precision: Floats
    """Ω_h, shape (T, d, d) for T regressions; empty when preconditioned."""
    factor: Floats
    """U_h with Ω_h = U_hᵀU_h, shape (T, d, d); empty unless preconditioned."""
    reward_moment: Floats
    next_moment: Floats
    samples: Floats
    """The last weights of each chain, shape (H, M, d)."""


class Spectrum(NamedTuple):
    """Eigenvalues of Ω_h, recomputed only after something arrived, and the work space for that."""

    values: Floats
    """(T, d); only the last column, λ_max, is kept for the plain sampler."""
    vectors: Floats
    """Row i of step h is the i-th eigenvector; empty unless collapsed."""
    basis: Floats
    diagonal: Floats
    off: Floats
    stale: np.ndarray[tuple[int], np.dtype[np.bool_]]


class LPSVIRecord(NamedTuple):
    """Arrays of one Delayed-LPSVI agent."""

    table: Table
    learned: LPSVILearned
    work: Work
    spectrum: Spectrum
    draws: int
    steps: int
    temperature: float
    step_ratio: float
    step_size: float
    noise: float
    sampler: int
    warm_start: int
    cap: bool
    first: bool

    @property
    def drawn(self) -> Floats:
        """The M draws of the step planned last, the first of the episode, shape (M, d)."""
        drawn: Floats = self.learned.samples[0]
        return drawn


@informs(LPSVIRecord)
@allocating_kernel
def information(agent: LPSVIRecord, log_determinants: Floats) -> None:
    """From the factor if there is one, else from Ω itself: O(d³), still less than a chain of d/3 steps."""
    if agent.sampler == PRECONDITIONED:
        factor_information(agent.learned.factor, log_determinants)
    else:
        for h in range(log_determinants.size):
            g = regression_of(h, agent.learned.reward_moment)
            log_determinants[h] = np.linalg.slogdet(agent.learned.precision[g])[1]


@allocating_kernel
def refresh_spectrum(spectrum: Spectrum, precision: Floats, g: int, vectors_too: bool) -> None:
    """Bring the eigenvalues (and eigenvectors) of regression g up to date if something has arrived since."""
    if not spectrum.stale[g]:
        return
    spectrum.stale[g] = False
    last = spectrum.values.shape[1] - 1
    if vectors_too:
        values, vectors = np.linalg.eigh(precision[g])
        copy(values, spectrum.values[g])
        copy(vectors.T, spectrum.vectors[g])
    else:
        spectrum.values[g, last] = largest_eigenvalue(precision[g], spectrum.basis, spectrum.diagonal, spectrum.off)


@kernel
def step_of(agent: LPSVIRecord, g: int) -> float:
    """Return η of regression g: c_η/λ_max(Ω), where λ_max(PΩ) = 1 when preconditioned; refuse one that diverges."""
    largest = 1.0
    if agent.sampler != PRECONDITIONED:
        refresh_spectrum(agent.spectrum, agent.learned.precision, g, agent.sampler == COLLAPSED)
        largest = agent.spectrum.values[g, agent.spectrum.values.shape[1] - 1]
    step = agent.step_size if agent.step_size > 0.0 else agent.step_ratio / largest
    if step * largest >= 1.0:
        raise InvalidInputError("step_size is too large: the Langevin chain diverges unless η·λ_max(Ω) < 1")
    return step


@kernel
def draw_chain(agent: LPSVIRecord, h: int, m: int, step: float, rng: np.random.Generator) -> None:
    """Move the m-th sample of step h to the end of a new chain."""
    learned, work = agent.learned, agent.work
    g, weights = regression_of(h, learned.reward_moment), learned.samples[h, m]
    if agent.warm_start == FROM_ZERO or (agent.warm_start == FROM_STEP and h == agent.table.horizon - 1):
        weights[:] = 0.0
    elif agent.warm_start == FROM_STEP:
        copy(learned.samples[h + 1, m], weights)
    if agent.sampler == PLAIN:
        chain(learned.precision[g], work.moment, step, agent.temperature, agent.steps, rng, weights, work.vector)
    elif agent.sampler == COLLAPSED:
        collapsed_draw(
            agent.spectrum.values[g],
            agent.spectrum.vectors[g],
            work.moment,
            step,
            agent.temperature,
            agent.steps,
            rng,
            weights,
            work.vector,
        )
    else:
        preconditioned_chain(
            learned.factor[g], work.moment, step, agent.temperature, agent.steps, rng, weights, work.vector
        )


@plans_states(LPSVIRecord)
@kernel
def plan_states(agent: LPSVIRecord, rng: np.random.Generator, first: int, last: int, policy: Ints) -> None:
    """Lines 4-10 of Algorithm 2 for the states from `first` to `last - 1`."""
    learned, work, horizon = agent.learned, agent.work, agent.table.horizon
    pair, pairs = first * agent.table.actions, (last - first) * agent.table.actions
    q, other = work.q[:pairs], work.other[:pairs]
    work.values[horizon] = 0.0
    for g in range(len(learned.reward_moment)):  # before any chain moves: a refused step size changes nothing
        step_of(agent, g)
    for h in range(horizon - 1, -1, -1):
        g = regression_of(h, learned.reward_moment)
        target_moment(learned.reward_moment[g], learned.next_moment[g], work.values[h + 1], work.moment)
        step = step_of(agent, g)
        if agent.sampler == PRECONDITIONED:
            solve_transposed(learned.factor[g], work.moment)
            solve(learned.factor[g], work.moment)  # the preconditioned chain wants ŵ = Ω⁻¹b in place of b
        for m in range(agent.draws):
            draw_chain(agent, h, m, step, rng)  # wᵐ ← LMC(L_h, w₀, η, N, γ)                  (line 6)
        largest_values(agent.table.columns, learned.samples[h], pair, q, other)  # Q = max_m φᵀwᵐ  (lines 7-8)
        cap = float(horizon - h) if agent.cap else np.inf
        greedy(q, cap, agent.first, rng, work.values[h, first:last], policy[h, first:last])  # (lines 9-10)


@learns(LPSVIRecord)
@kernel
def learn(agent: LPSVIRecord, episode: int, states: Ints, actions: Ints, rewards: Floats) -> None:
    """Update the loss of every step with one late trajectory."""
    learned, table, x = agent.learned, agent.table, agent.work.vector
    for h in range(table.horizon):
        g, phi = regression_of(h, learned.reward_moment), table.rows[states[h] * table.actions + actions[h]]
        weight = 1.0 / (agent.noise * agent.noise)
        add_to_moments(learned.reward_moment[g], learned.next_moment[g], phi, rewards[h], states[h + 1], weight)
        if agent.sampler == PRECONDITIONED:
            for i in range(x.size):
                x[i] = phi[i] / agent.noise
            rank_one_update(learned.factor[g], x)
        else:
            agent.spectrum.stale[g] = True
            for i in range(phi.size):  # Ω ← Ω + φφᵀ/σ²
                row = learned.precision[g, i]
                share = weight * phi[i]
                for j in range(phi.size):
                    row[j] += share * phi[j]

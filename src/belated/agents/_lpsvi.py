"""Delayed Langevin Posterior Sampling Value Iteration: sampling by noisy gradient steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from belated._kernels.jit import copy, inlined, kernel
from belated._kernels.langevin import KRYLOV, collapsed_draw, largest_eigenvalue, plain_chain, preconditioned_chain
from belated._kernels.normals import standard_normals
from belated._kernels.sparse_ridge import Singles
from belated._util.validate import check_room, choice, integer, real
from belated.agents import _invariants as invariants
from belated.agents._base import REWARDS, Arrival
from belated.agents._information import factor_information
from belated.agents._regression import (
    SampledValueIteration,
    Table,
    Work,
    add_to_factor,
    add_to_moments,
    largest_values,
    make_regression,
    make_table,
    make_work,
    mean_weights,
    regression_of,
    sweep,
)
from belated.agents._row_regression import RowRegression, RowStep
from belated.agents._sparse import SparseRegression
from belated.errors import InvalidInputError
from belated.theory import accepted, chain_length, rounds, temperature, warn_of_width
from belated.types import Floats, Ints, TableProblem

#: Names of the samplers and of the starting points of a chain, with their codes in the kernels.
SAMPLERS = ("plain", "collapsed", "preconditioned")
PLAIN, COLLAPSED, PRECONDITIONED = range(3)
WARM_STARTS = ("episode", "step", "cold")
FROM_EPISODE, FROM_STEP, FROM_ZERO = range(3)


@dataclass(frozen=True, kw_only=True)
class DelayedLPSVI(SampledValueIteration):
    """Delayed-LPSVI (Kuang et al., 2023, Algorithms 2 and 3).

    Like Delayed-PSVI, but each weight vector is the end of N Langevin steps on the regression loss. There are three
    samplers:

    * ``"plain"``: the chain as published, O(Nd²) per draw. It does not mix in rarely visited directions, because it
    needs about as many steps as the condition number of Ω;
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
    """γ: a chain that has mixed samples from N(ŵ, γΩ⁻¹(I + A)⁻¹), between γ/2 (small steps) and γ times Ω⁻¹."""
    step_ratio: float = 0.5
    """c_η: the step size is η = c_η/λ_max(Ω), or c_η itself when preconditioned. Must be below 1 to converge."""
    step_size: float | None = None
    """η; None derives it from `step_ratio`."""
    sampler: str = "plain"
    """How a chain is drawn: "plain", "collapsed" or "preconditioned"."""
    warm_start: str = "episode"
    """Where a chain starts: at the last "episode"'s sample of the same step, at the sample of the "step" above
    in this episode, or "cold" at zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
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

        The paper's N_k grows with the condition number as data arrive; the settings have a single N, that of the
        maximum κ. Chains of that length use the sampler "collapsed", which has the same distribution as the plain one
        without taking the N steps.
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
            chain=Chain(
                steps=int(self.steps),
                temperature=float(self.temperature),
                step_ratio=float(self.step_ratio),
                step_size=0.0 if self.step_size is None else float(self.step_size),
                sampler=SAMPLERS.index(self.sampler),
            ),
            noise=float(self.noise),
            warm_start=WARM_STARTS.index(self.warm_start),
            cap=bool(self.cap),
            first=self.ties == "first",
        )

    def draw_weights(
        self, regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
    ) -> Floats:
        """wᵐ ← LMC(L_h, w₀, η, N, γ) (line 6)."""
        step = self._step_size(1.0 if self.sampler == "preconditioned" else regression.largest_eigenvalue)
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
        noise[np.argsort(omega, kind="stable")] = standard_normals(rng, w.shape)  # ordered by eigenvalue
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

    def draw_rows(self, regression: RowRegression, step: RowStep, rng: np.random.Generator) -> tuple[Singles, float]:
        """wᵐ ← LMC(L_h, w₀, η, N, γ) (line 6), by products with the rows; other features are drawn as from w₀ = 0."""
        precise = self.sampler == "preconditioned"
        eta = self._step_size(1.0 if precise else regression.largest_eigenvalue)
        contraction = 1.0 - 2.0 * eta * (1.0 if precise else regression.ridge)
        kept = contraction**self.steps
        variance = self.temperature * (1.0 - kept**2) / (1.0 + contraction)  # of a weight, times λ
        spread = math.sqrt(variance / self.ridge)
        if self.warm_start == "cold":
            weights = np.zeros_like(step.above)
        else:
            weights = step.last() if self.warm_start == "episode" else step.above
        if precise:  # U⁻¹ε is a draw from N(0, Ω⁻¹), and a sum of N of them is a wider one
            mean, deviations = regression.mean(step.targets, step.duals), regression.deviations_of(step.place)
            width = np.float32(math.sqrt(variance))
            return np.float32(kept) * weights + np.float32(1.0 - kept) * mean + width * deviations, spread
        moment, active = regression.moment(step.targets)[:, np.newaxis], regression.active
        w, amplitude = weights[active].astype(np.float64), math.sqrt(2.0 * eta * self.temperature)  # √(2ηγ)
        for _ in range(self.steps):
            gradient = 2.0 * (regression.multiply(w) - moment)  # ∇L = 2(Ωw − b)
            w += amplitude * standard_normals(rng, w.shape) - eta * gradient
        weights = regression.prior_of(step.place, spread)
        weights[active] = w
        return weights, spread

    def _step_size(self, largest: float) -> float:
        """Return η, where λ_max(Ω) is `largest`."""
        step = self.step_ratio / largest if self.step_size is None else self.step_size
        if step * largest >= 1.0:
            raise InvalidInputError("step_size is too large: the Langevin chain diverges unless η·λ_max(Ω) < 1")
        return step

    def check_learned(self, learned: LPSVILearned, problem: TableProblem) -> None:
        """Require positive definite matrices, or factors with a positive diagonal."""
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
    """Eigenvalues of Ω_h, recomputed only after new arrivals, and the work space for that."""

    values: Floats
    """Shape (T, d); the plain sampler uses only the last column, λ_max."""
    vectors: Floats
    """Row i of regression h is the i-th eigenvector; empty unless collapsed."""
    basis: Floats
    diagonal: Floats
    off: Floats
    stale: np.ndarray[tuple[int], np.dtype[np.bool_]]


class Chain(NamedTuple):
    """The parameters of the chains."""

    steps: int
    temperature: float
    step_ratio: float
    step_size: float
    """η, or 0 if it is derived from the ratio."""
    sampler: int


class LPSVIRecord(NamedTuple):
    table: Table
    learned: LPSVILearned
    work: Work
    spectrum: Spectrum
    chain: Chain
    noise: float
    warm_start: int
    cap: bool
    first: bool

    @property
    def drawn(self) -> Floats:
        """The M draws of the first step of the episode, shape (M, d)."""
        drawn: Floats = self.learned.samples[0]
        return drawn

    def plan(self, rng: np.random.Generator, start: int, policy: Ints) -> None:
        """Lines 4-10 of Algorithm 2."""
        for g in range(len(self.learned.reward_moment)):  # before any chain moves, so that an error changes nothing
            step_of(self.chain, precision_of(self, g), self.spectrum, g)
        sweep(self, rng, start, policy)

    def action_values(self, h: int, pair: int, q: Floats, other: Floats, rng: np.random.Generator) -> None:
        """Lines 6-8."""
        samples = self.learned.samples
        if self.warm_start == FROM_ZERO or (self.warm_start == FROM_STEP and h == self.table.horizon - 1):
            samples[h] = 0.0
        elif self.warm_start == FROM_STEP:
            copy(samples[h + 1], samples[h])
        g = regression_of(h, self.learned.reward_moment)
        # wᵐ ← LMC(L_h, w₀, η, N, γ)                                                     (line 6)
        draw_chains(
            self.chain, precision_of(self, g), self.spectrum, g, self.work.moment, rng, samples[h], self.work.vector
        )
        largest_values(self.table.columns, samples[h], pair, q, other)  # Q = max_m φᵀwᵐ  (lines 7-8)

    def learn(self, arrival: Arrival) -> None:
        """Update the loss of each step."""
        learned, table = self.learned, self.table
        weight = 1.0 / (self.noise * self.noise)
        for step in range(arrival.actions.size):
            pair = add_to_moments(learned.reward_moment, learned.next_moment, table, arrival, step, weight)
            if arrival.part == REWARDS:
                continue
            g, phi = regression_of(arrival.first + step, learned.reward_moment), table.rows[pair]
            if self.chain.sampler == PRECONDITIONED:
                add_to_factor(learned.factor[g], phi, self.noise, self.work.vector)
            else:
                self.spectrum.stale[g] = True
                for i in range(phi.size):  # Ω ← Ω + φφᵀ/σ²
                    row = learned.precision[g, i]
                    share = weight * phi[i]
                    for j in range(phi.size):
                        row[j] += share * phi[j]

    def settle(self) -> None:
        """Do nothing: `learn` defers no work."""

    def information(self, log_determinants: Floats) -> None:
        """Set log det Ω from the factor if there is one, else from Ω in O(d³), less than a chain of d/3 steps."""
        if self.chain.sampler == PRECONDITIONED:
            factor_information(self.learned.factor, log_determinants)
        else:
            for h in range(log_determinants.size):
                g = regression_of(h, self.learned.reward_moment)
                log_determinants[h] = np.linalg.slogdet(self.learned.precision[g])[1]


@inlined
def precision_of(record: LPSVIRecord, g: int) -> Floats:
    """Return Ω of regression g, or its factor if preconditioned."""
    learned = record.learned
    found: Floats = learned.factor[g] if record.chain.sampler == PRECONDITIONED else learned.precision[g]
    return found


@kernel
def refresh_spectrum(spectrum: Spectrum, precision: Floats, g: int, vectors_too: bool) -> None:
    """Update the eigenvalues (and eigenvectors) of regression g if something has arrived since."""
    if not spectrum.stale[g]:
        return
    spectrum.stale[g] = False
    last = spectrum.values.shape[1] - 1
    if vectors_too:
        values, vectors = np.linalg.eigh(precision)
        copy(values, spectrum.values[g])
        copy(vectors.T, spectrum.vectors[g])
    else:
        spectrum.values[g, last] = largest_eigenvalue(precision, spectrum.basis, spectrum.diagonal, spectrum.off)


@kernel
def step_of(chain: Chain, precision: Floats, spectrum: Spectrum, g: int) -> float:
    """Return η of regression g: c_η/λ_max(Ω), where λ_max(PΩ) = 1 when preconditioned.

    Raise InvalidInputError if the chain would diverge.
    """
    largest = 1.0
    if chain.sampler != PRECONDITIONED:
        refresh_spectrum(spectrum, precision, g, chain.sampler == COLLAPSED)
        largest = spectrum.values[g, spectrum.values.shape[1] - 1]
    step = chain.step_size if chain.step_size > 0.0 else chain.step_ratio / largest
    if step * largest >= 1.0:
        raise InvalidInputError("step_size is too large: the Langevin chain diverges unless η·λ_max(Ω) < 1")
    return step


@kernel
def draw_chains(
    chain: Chain,
    precision: Floats,
    spectrum: Spectrum,
    g: int,
    moment: Floats,
    rng: np.random.Generator,
    weights: Floats,
    work: Floats,
) -> None:
    """Move every row of `weights` (M, d) to the end of a new chain of regression g; `moment` is overwritten.

    `precision` is Ω, or its factor U when preconditioned; the `spectrum` belongs to it. `work` (d,) is work space.
    """
    step = step_of(chain, precision, spectrum, g)
    if chain.sampler == PRECONDITIONED:
        mean_weights(precision, moment)  # the preconditioned chain needs ŵ = Ω⁻¹b instead of b
    steps, temperature = chain.steps, chain.temperature
    for m in range(weights.shape[0]):
        if chain.sampler == PLAIN:
            plain_chain(precision, moment, step, temperature, steps, rng, weights[m], work)
        elif chain.sampler == COLLAPSED:
            values, vectors = spectrum.values[g], spectrum.vectors[g]
            collapsed_draw(values, vectors, moment, step, temperature, steps, rng, weights[m], work)
        else:
            preconditioned_chain(precision, moment, step, temperature, steps, rng, weights[m], work)

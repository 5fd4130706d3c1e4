"""Regression agents in simulators: distinct transitions are stored, and plans are drawn from sparse regressions.

The planner needs features and, for each regression, Ω, Σφr and C[s'] = Σφ·1(next state is s'). If states are not
numbered in advance, s' ranges over the next states seen so far, identified by their features. A policy stores the
weights, so that it acts in unseen states by φ(s, ·)ᵀw. Ω has a block for each action if φ(s, a) is ψ(s) in the block of
action a, and a single block with joint features.

A `WeightRule` defines how an algorithm draws weights from a regression; everything else is shared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from belated._kernels.jit import entry_point
from belated._kernels.planning import LARGEST_VALUE, TIE
from belated._kernels.sparse_ridge import Singles
from belated._util.blas import one_blas_thread
from belated._util.validate import LARGEST_NUMBER, check_generator, check_room, refuse
from belated.agents._blocks import Data, add_gram, cost, make_data, multiply, picked
from belated.agents._heard import Heard
from belated.agents._plan_sets import NO_WIDTHS, PlanSet, Widths, width_of
from belated.agents._row_regression import RowRegression, RowStep
from belated.agents._transitions import TERMINAL, Arrived, Rows, Sparse, Steps, Store, gathered, with_rewards_in_flight
from belated.errors import InvalidInputError
from belated.types import (
    Algorithm,
    Feedback,
    Floats,
    Ints,
    Policy,
    Problem,
    SimulatorProblem,
    SparseRows,
    SparseVector,
    Trajectory,
    check_batch,
)

#: Maximum number of distinct transitions stored; beyond, a uniform sample.
MOST_ROWS = 2**17
#: A plan is made when the episodes since the last one have paid for it, with this many operations per step,
BUDGET = 2**14
#: or when the number of arrived steps has grown by this factor since the last plan.
GROWTH = 1.1
#: Minimum diagonal of Ω relative to its trace, so that rounding does not make it singular.
ROUNDING = 1e-10

EPSILON = float(np.finfo(np.float64).eps)
_NO_ROWS = np.zeros(0, np.int64)


class Progress(NamedTuple):
    """Counters that decide when the next plan is made."""

    arrived: float = 0.0
    """Number of steps that have arrived."""
    planned: float = 0.0
    """Number of steps that had arrived at the last plan."""
    begun: float = 0.0
    """Episodes begun since the last plan."""
    price: float = 0.0
    """Cost of one step of the last plan."""
    episodes: float = 0.0
    """Episodes begun so far."""

    def is_due(self, growth: float) -> bool:
        return self.begun * BUDGET >= self.price or self.arrived >= growth * self.planned


def check_shared(shared: bool, problem: Problem) -> None:
    """Raise `InvalidInputError` if steps cannot share one regression."""
    if shared and not (problem.homogeneous or problem.horizon == 1):
        wanted = "False, since the problem is not homogeneous: its dynamics and rewards may depend on the step"
        raise refuse("shared", shared, wanted)


class SparseAgent(ABC):
    """An agent for simulators: stores distinct late transitions, and plans with those that have arrived.

    Feedback may arrive in any order and in parts. A plan is kept until the episodes since then have paid for the next
    one, or 10 % more steps have arrived: on small problems every episode has its own plan.
    """

    def __init__(self, settings: Any, problem: SimulatorProblem, *, shared: bool, most_rows: int = MOST_ROWS) -> None:
        check_shared(shared, problem)
        self.settings, self.problem = settings, problem
        self.slots = 1 if shared else problem.horizon
        """Number of regressions: one for all steps, or one for each."""
        self.store = Store(most_rows, joint=problem.actions if problem.joint else 0)
        self.arrived: Arrived = self.store
        """The data that plans are made from."""
        self.progress = Progress()
        self.heard = Heard(problem.horizon)
        self.paid = 0.0, 0.0
        """Minimum and maximum reward that has arrived, including 0."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """The problem's range; if it is learned, widened by the rewards that have arrived."""
        (low, high), (least, most) = self.problem.reward_range, self.paid
        return (min(low, least), max(high, most)) if self.problem.learned_range else (low, high)

    @property
    def growth(self) -> float:
        """Factor by which the number of arrived steps must grow for the next plan."""
        return GROWTH

    @property
    def blocks(self) -> int:
        """Number of blocks of Ω: one for each action, or one with joint features."""
        return 1 if self.problem.joint else self.problem.actions

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> float:
        """Make a new plan and return the cost of one of its steps."""

    @abstractmethod
    def policy(self, rng: np.random.Generator) -> Policy:
        """Return a policy that plays the last plan."""

    def note(self, trajectory: Trajectory) -> None:  # noqa: B027 - most agents do not need it
        """Observe a trajectory with rewards before it is stored."""

    def plan(self, rng: np.random.Generator) -> Policy:
        check_generator("rng", rng)
        begun, episodes = self.progress.begun + 1, self.progress.episodes + 1
        self.progress = self.progress._replace(begun=begun, episodes=episodes)
        if self.progress.is_due(self.growth):
            arrived = self.progress.arrived
            with one_blas_thread():
                self.progress = Progress(arrived, arrived, 0.0, self.draw(rng), episodes)
        return self.policy(rng)

    def plan_now(self, rng: np.random.Generator) -> Policy:
        """Return the policy of a new plan, even if it is not due."""
        self.progress = self.progress._replace(price=0.0)
        return self.plan(rng)

    def learn(self, batch: Sequence[Feedback]) -> None:
        """Store a batch of late trajectories; if one is invalid or repeated, none is learned."""
        clean = check_batch(batch, self.problem)
        clean.sort(key=lambda each: each.trajectory.part == "rewards")  # states before rewards
        self.heard.take(clean, states_first=True)
        for feedback in clean:
            trajectory: Any = feedback.trajectory
            numbers = [self.store.state(state) for state in trajectory.states]
            if trajectory.terminated:
                numbers[-1] = TERMINAL
            steps = zip(trajectory.actions.tolist(), trajectory.rewards.tolist(), strict=True)
            learn = self.store.add if trajectory.part == "all" else self.store.pay
            if trajectory.part != "states":
                least, most = self.paid
                self.paid = min(least, float(trajectory.rewards.min())), max(most, float(trajectory.rewards.max()))
                self.note(trajectory)
            for h, (action, reward) in enumerate(steps):
                slot = trajectory.first + h if self.slots > 1 else 0
                if trajectory.part == "states":
                    self.store.visit(slot, numbers[h], action, numbers[h + 1])
                else:
                    learn(slot, numbers[h], action, numbers[h + 1], reward)
            if trajectory.part != "rewards":
                self.progress = self.progress._replace(arrived=self.progress.arrived + len(trajectory.actions))
        self.store.thin_out()

    def learn_steps(self, steps: Steps) -> None:
        """Learn the steps of many episodes at once, replacing everything learned before.

        Plans are identical, to the last bit, to those of an agent that has learned these episodes in order.
        """
        self.arrived = gathered(steps, self.slots, self.store.limit)
        paid = steps.rewards[steps.rewarded]
        self.paid = min(0.0, float(paid.min(initial=0.0))), max(0.0, float(paid.max(initial=0.0)))
        episodes = float(np.unique(steps.episode).size)
        self.progress = Progress(arrived=float(steps.state.size), episodes=episodes)
        self.note_steps(steps)

    def note_steps(self, steps: Steps) -> None:  # noqa: B027 - as `note`
        """Observe the steps given to `learn_steps`."""

    @abstractmethod
    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        """Return `count` new plans, or one if all would be equal; the memory and the plan in use do not change."""

    def parts(self) -> Iterator[tuple[Rows, int, int]]:
        """Yield, from last to first, the rows of each regression and its steps first .. last - 1."""
        high = self.reward_range[1]
        largest = high if math.isfinite(high) else self.paid[1]
        if self.slots == 1:
            yield with_rewards_in_flight(self.arrived.rows(), largest), 0, self.problem.horizon
        else:
            for slot in range(self.slots - 1, -1, -1):
                yield with_rewards_in_flight(self.arrived.rows(slot), largest), slot, slot + 1

    @abstractmethod
    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return the last plan, and anything else to be saved, as named arrays."""

    @abstractmethod
    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Restore what `plan_memory` returned, or raise `InvalidInputError`."""

    @abstractmethod
    def fresh(self) -> SparseAgent:
        """Return a new agent with the same settings and problem."""

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return everything learned and the plan in use, as named arrays."""
        own = {"progress": np.array(self.progress), "paid": np.array(self.paid), "heard": self.heard.memory()}
        return {**self.store.memory(), **self.plan_memory(), **own}

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace what was learned; invalid arrays raise `InvalidInputError` and change nothing."""
        fresh = self.fresh()
        wanted = fresh.memory()
        if set(wanted) != set(memory):
            raise InvalidInputError(f"memory must hold the arrays {sorted(wanted)}, got {sorted(memory)}")
        for name, target in wanted.items():
            given = memory[name]
            if given.ndim != target.ndim or given.dtype != target.dtype or not np.isfinite(given).all():
                raise InvalidInputError(
                    f"memory[{name!r}] must be {target.dtype} with {target.ndim} axes and finite, "
                    f"got {given.dtype} with {given.ndim} axes"
                )
        if memory["progress"].shape != (len(Progress._fields),):
            raise InvalidInputError("memory['progress'] must have five numbers")
        paid = memory["paid"].tolist()
        if len(paid) != 2 or not -LARGEST_NUMBER <= paid[0] <= 0.0 <= paid[1] <= LARGEST_NUMBER:
            raise InvalidInputError("memory['paid'] must be the minimum and maximum reward, including 0")
        fresh.paid, fresh.heard = (paid[0], paid[1]), Heard.restored(memory["heard"], self.problem.horizon)
        fresh.store.restore(memory, self.problem.features.size, self.problem.actions, self.slots)
        fresh.restore_plan(memory)
        fresh.progress = Progress(*memory["progress"].tolist())
        self.__dict__.update(fresh.__dict__)

    def __repr__(self) -> str:
        return f"<{self.settings}: {self.problem}>"


class SparseRegression:
    """Ω = Σφφᵀ/σ² + λI of one regression, block by block, over all d features.

    Features that no visited pair has are treated separately: Ω is λ there.
    """

    def __init__(self, data: Data, phi: Any, visits: Floats, size: int, noise: float, ridge: float) -> None:
        self.data, self.ridge = data, ridge
        self.dimension = size * (len(data.starts) - 1)
        self.phi, self.shares = phi, visits / noise**2
        """φ of each visited pair, one per row, over the active features; and n/σ² of each."""
        blocks = np.repeat(np.arange(len(data.starts) - 1), np.diff(data.starts))
        self.active: Ints = blocks * size + data.active
        """Numbers of the active features, ascending."""
        self.rest = np.ones(self.dimension, np.bool_)
        self.rest[self.active] = False
        self._spans = [(a, b) for a, b in zip(data.starts[:-1], data.starts[1:], strict=True) if a < b]
        self.columns = [self.active[first:last] for first, last in self._spans]

    @cached_property
    def precisions(self) -> list[Floats]:
        """Ω of each block that has active features."""
        found, by_column = [], self.phi.tocsc()
        for first, last in self._spans:
            part = by_column[:, first:last].tocsr()
            has = np.diff(part.indptr) > 0
            part = part[has]
            precision = np.zeros((last - first, last - first))
            rows = Sparse(part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data)
            add_gram(rows, self.shares[has], precision)
            k, trace = last - first, float(np.trace(precision))
            precision[np.diag_indices(k)] += max(self.ridge, max(ROUNDING, k * k * EPSILON) * trace)
            found.append(precision)
        return found

    @cached_property
    def pair_order(self) -> Ints:
        """The rows of `phi`, ordered by features and then by action, independently of the order of arrival."""
        size = self.dimension // (len(self.data.starts) - 1)
        columns, values = self.active[self.phi.indices], self.phi.data
        keys = [
            (columns[a:b] % size).astype(">i8").tobytes() + columns[a:b].astype(">i8").tobytes() + values[a:b].tobytes()
            for a, b in zip(self.phi.indptr[:-1], self.phi.indptr[1:], strict=True)
        ]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)

    @cached_property
    def factors(self) -> list[Floats]:
        """U of each block, with Ω = UᵀU."""
        return [scipy.linalg.cholesky(precision, check_finite=False) for precision in self.precisions]

    def _by_block(
        self, x: Floats, apart: float, matrices: list[Floats], apply: Callable[[Floats, Floats], Floats]
    ) -> Floats:
        """Return `apart`·x where Ω is λ, and `apply` of each block's part of x, shape (..., d)."""
        result: Floats = apart * x
        for columns, matrix in zip(self.columns, matrices, strict=True):
            result[..., columns] = apply(matrix, x[..., columns].T).T
        return result

    def solve_transposed(self, x: Floats) -> Floats:
        """Return U⁻ᵀx for each row x."""
        return self._by_block(
            x,
            self.ridge**-0.5,
            self.factors,
            lambda u, b: scipy.linalg.solve_triangular(u, b, trans=1, check_finite=False),
        )

    def solve(self, x: Floats) -> Floats:
        """Return U⁻¹x for each row x."""
        return self._by_block(
            x, self.ridge**-0.5, self.factors, lambda u, b: scipy.linalg.solve_triangular(u, b, check_finite=False)
        )

    def mean(self, moment: Floats) -> Floats:
        """Return ŵ = Ω⁻¹Φy/σ²."""
        return self.solve(self.solve_transposed(moment))

    def multiply(self, x: Floats) -> Floats:
        """Return Ωx for each row x."""
        return self._by_block(x, self.ridge, self.precisions, lambda omega, b: omega @ b)

    @cached_property
    def spectra(self) -> list[tuple[Floats, Floats]]:
        """Eigenvalues and eigenvectors (columns) of each block."""
        return [scipy.linalg.eigh(precision, check_finite=False) for precision in self.precisions]

    def rotate(self, x: Floats, *, back: bool) -> Floats:
        """Return x in the eigenvectors' coordinates, or `back` from them."""
        vectors = [vectors for _, vectors in self.spectra]
        return self._by_block(x, 1.0, vectors, (lambda v, b: v @ b) if back else (lambda v, b: v.T @ b))

    @cached_property
    def largest_eigenvalue(self) -> float:
        tops = [scipy.linalg.eigvalsh(each, subset_by_index=[len(each) - 1] * 2)[0] for each in self.precisions]
        return float(max(tops, default=self.ridge))

    @cached_property
    def log_determinant(self) -> float:
        inside = sum(2.0 * float(np.log(np.diag(factor)).sum()) for factor in self.factors)
        return inside + float(self.rest.sum()) * float(np.log(self.ridge))

    @cached_property
    def diagonal(self) -> Floats:
        """The diagonal of Ω, shape (d,)."""
        found = np.full(self.dimension, self.ridge)
        for columns, precision in zip(self.columns, self.precisions, strict=True):
            found[columns] = np.diag(precision)
        return found

    @cached_property
    def inverses(self) -> list[Floats]:
        """Ω⁻¹ of each block."""
        return [scipy.linalg.cho_solve((u, False), np.eye(len(u)), check_finite=False) for u in self.factors]


@dataclass(frozen=True, kw_only=True)
class WeightRule:
    """An algorithm for simulators: how weights are drawn from a regression, and how actions are chosen."""

    draw: Callable[[SparseRegression, Floats, Floats, Floats, np.random.Generator], Floats]
    """(regression, Φy/σ², last, above, rng) -> weights (M, d). `last` are those of the same step in the last plan,
    `above` those of the next step in this plan; zero if there are none."""
    draws: int = 1
    """M."""
    noise: float = 1.0
    """σ."""
    ridge: float = 1.0
    """λ."""
    shared: bool = False
    """Whether all steps share one regression."""
    capped: bool = True
    """Whether action values are capped at the return that the remaining steps can bring."""
    first: bool = False
    """Whether ties are broken by the first action instead of at random."""
    epsilon: float = 0.0
    """Probability of a random action."""
    draw_rows: Callable[[RowRegression, RowStep, np.random.Generator], tuple[Singles, float]] | None = None
    """The same for many features, where a regression is stored as rows: (regression, step, rng) -> weights (kB, M) of
    the features seen, and the standard deviation of all others. None to use matrices at any size."""
    bonus: Callable[[int, int], float] | None = None
    """(number of this episode, remaining steps after this one) -> β; β‖φ‖_{Ω⁻¹} is added to φᵀw."""


class WeightAgent(SparseAgent):
    """An agent in a simulator whose algorithm is a `WeightRule`."""

    def __init__(self, settings: Algorithm, problem: SimulatorProblem, rule: WeightRule) -> None:
        super().__init__(settings, problem, shared=rule.shared)
        self.rule = rule
        check_room("the weights of horizon × draws × d", problem.horizon, rule.draws, problem.dimension)
        shape = (problem.horizon, rule.draws, self.blocks, problem.features.size)
        self.weights: Floats = np.zeros(shape)
        self.widths = NO_WIDTHS
        self._regressions: tuple[float, list[tuple[SparseRegression, int, int]]] = (-1.0, [])

    def fresh(self) -> WeightAgent:
        return WeightAgent(self.settings, self.problem, self.rule)

    def regressions(self) -> list[tuple[SparseRegression, int, int]]:
        """Return all regressions with their steps, from last to first."""
        if self._regressions[0] != self._version:
            self._regressions = self._version, list(self._make_regressions())
        return self._regressions[1]

    @property
    def _version(self) -> float:
        return self.progress.arrived

    def _make_regressions(self) -> Iterator[tuple[SparseRegression, int, int]]:
        states, problem = self.arrived.states(), self.problem
        for rows, first, last in self.parts():
            data, phi, visits = make_data(
                states, rows, problem.actions, size=problem.features.size, joint=problem.joint
            )
            yield (
                SparseRegression(data, phi, visits, problem.features.size, self.rule.noise, self.rule.ridge),
                first,
                last,
            )

    def information(self) -> Floats:
        """Return log det Ω of every step, shape (H,)."""
        found = np.zeros(self.problem.horizon)
        for regression, first, last in self.regressions():
            found[first:last] = regression.log_determinant
        return found

    def draw(self, rng: np.random.Generator) -> float:
        self._regressions = (-1.0, [])  # rewards may have arrived since
        self.weights, self.widths, price = self._sweep(rng, self.weights)
        return price

    def plan_set(self, rng: np.random.Generator, count: int) -> PlanSet:
        """Return `count` successive plans; a chain starts anew, and continues from one member to the next."""
        self._regressions = (-1.0, [])
        problem, rule, members, widths = self.problem, self.rule, [np.zeros_like(self.weights)], self.widths
        for _ in range(1 if rule.draw is mean_draw else count):
            weights, widths, _ = self._sweep(rng, members[-1])
            members.append(weights)
        high = max(self.reward_range[1], 0.0) if rule.capped else math.inf
        return PlanSet(
            weights=np.stack(members[1:]),
            features=np.arange(problem.features.size),
            widths=widths,
            caps=high * np.arange(problem.horizon, 0.0, -1.0),
            ridge=float(rule.ridge),
            epsilon=float(rule.epsilon),
            tie=TIE,
            first=rule.first,
        )

    def _sweep(self, rng: np.random.Generator, before: Floats) -> tuple[Floats, Widths, float]:
        """Return weights, widths and cost per step of a new plan; `before` are the weights of the last one."""
        problem, rule = self.problem, self.rule
        high = max(self.reward_range[1], 0.0)
        shape, d = self.weights.shape[1:], problem.dimension
        weights, betas = np.zeros_like(self.weights), np.zeros(problem.horizon)
        above, price = np.zeros((rule.draws, d)), 0.0
        kept: list[SparseRegression] = []
        for regression, first, last in self.regressions():
            data = regression.data
            values = np.zeros(data.arrivals.size)  # V of the next states; the terminal state is last
            inside = np.zeros(data.active.size)
            # the widths of the states after step h are those of the regression of step h + 1
            following = kept[-1] if kept and last - first == 1 else regression
            widths = following_widths(data, following, problem) if rule.bonus is not None else np.zeros((0, 0))
            moment = np.zeros(d)
            for h in range(last - 1, first - 1, -1):
                left = problem.horizon - h
                if left > 1:
                    cap = min(high * (left - 1), LARGEST_VALUE) if rule.capped else LARGEST_VALUE
                    back_up(data, weights[h + 1], widths, float(betas[h + 1]), cap, values, inside)
                targets = problem.discount * inside + data.reward_moment
                moment[regression.active] = targets / rule.noise**2  # Φy/σ² with y = r + γV(s')
                above = rule.draw(regression, moment, before[h].reshape(rule.draws, d), above, rng)
                weights[h] = above.reshape(shape)
                if rule.bonus is not None:
                    betas[h] = rule.bonus(int(self.progress.episodes), left - 1)
            price += cost(data, last - first)
            kept.append(regression)
        if not np.isfinite(weights).all():
            raise InvalidInputError("action values are not numbers: rewards or settings are too large for floats")
        bonus = make_widths(kept[::-1], betas) if rule.bonus is not None else NO_WIDTHS
        return weights, bonus, price / problem.horizon

    def policy(self, rng: np.random.Generator) -> WeightPolicy:
        return WeightPolicy(self, int(rng.integers(2**63)))

    def plan_memory(self) -> dict[str, npt.NDArray[Any]]:
        widths = {f"widths.{name}": values for name, values in self.widths._asdict().items()}
        return {"weights": self.weights.copy(), **widths}

    def restore_plan(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        widths = Widths(*(np.array(memory[f"widths.{name}"]) for name in Widths._fields))
        lengths = np.diff(widths.starts) if widths.starts.size else np.zeros(0, np.int64)
        fits = (
            memory["weights"].shape == self.weights.shape
            and widths.starts.size in (0, self.slots * self.blocks + 1)
            and bool((lengths >= 0).all())
            and widths.active.size == int(lengths.sum())
            and np.array_equal(widths.offsets, np.concatenate([[0], np.cumsum(lengths**2)])[: widths.starts.size])
            and widths.inverse.size == int((lengths**2).sum())
            and widths.beta.size == (self.problem.horizon if widths.starts.size else 0)
        )
        if not fits:
            raise InvalidInputError("memory must hold a plan for this problem")
        self.weights, self.widths = np.array(memory["weights"]), widths


def make_widths(regressions: list[SparseRegression], betas: Floats) -> Widths:
    """Return Ω⁻¹ of each regression, in the order of the steps."""
    active = [regression.data.active for regression in regressions]
    lengths = np.concatenate([np.diff(regression.data.starts) for regression in regressions])
    inverses = [inverse.ravel() for regression in regressions for inverse in regression.inverses]
    return Widths(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate(active).astype(np.int64),
        np.concatenate([[0], np.cumsum(lengths**2)]).astype(np.int64),
        np.concatenate([np.zeros(0), *inverses]),
        betas,
    )


def following_widths(data: Data, regression: SparseRegression, problem: SimulatorProblem) -> Floats:
    """Return ‖φ(s', a)‖_{Ω⁻¹} of the next states, with Ω of `regression`, shape (U, A)."""
    widths = np.zeros((data.arrivals.size - 1, problem.actions))
    fill_widths(data.following, make_widths([regression], np.zeros(0)), regression.ridge, problem.joint, widths)
    return widths


@entry_point
def fill_widths(states: Sparse, blocks: Widths, ridge: float, joint: bool, widths: Floats) -> None:
    """Set ‖φ(s, a)‖_{Ω⁻¹} of each state and action."""
    actions = widths.shape[1]
    for s in range(widths.shape[0]):
        for a in range(actions):
            row, block = (s * actions + a, 0) if joint else (s, a)
            begin, end = states.starts[row], states.starts[row + 1]
            widths[s, a] = width_of(states.indices[begin:end], states.values[begin:end], blocks, block, ridge)


@entry_point
def back_up(
    data: Data, weights: Floats, widths: Floats, beta: float, cap: float, values: Floats, moment: Floats
) -> None:
    """Set V = min{max_a max_m φᵀwᵐ + β‖φ‖, cap} of each next state, and `moment` to Σ_{s'} C[s']·V(s').

    The weights have shape (M, B, k). The last of `values` is that of the terminal state, zero.
    """
    states, count = data.following, values.size - 1
    draws, blocks = weights.shape[0], weights.shape[1]
    per_state = (states.starts.size - 1) // max(count, 1)  # A with joint features, else 1
    for s in range(count):
        best = -np.inf
        for a in range(per_state * blocks):
            row, block = (s * per_state + a, 0) if per_state > 1 else (s, a)
            begin, end = states.starts[row], states.starts[row + 1]
            extra = beta * widths[s, a] if widths.size > 0 else 0.0
            for m in range(draws):
                best = max(best, picked(states.indices, states.values, begin, end, weights[m, block]) + extra)
        values[s] = max(min(best, cap), -LARGEST_VALUE)
    multiply(data.next_moment, values, moment)


@entry_point
def action_values(
    weights: Floats,
    starts: Ints,
    indices: Ints,
    values: Floats,
    widths: Widths,
    first: int,
    ridge: float,
    beta: float,
    q: Floats,
) -> None:
    """Set q_a = max_m φ(s, a)ᵀwᵐ + β‖φ(s, a)‖ from weights of shape (M, B, k); `starts` is empty for ψ(s).

    `first` is the index of the regression's first block in `widths`, which are empty without a bonus.
    """
    for a in range(q.size):
        begin, end, block = (0, indices.size, a) if starts.size == 0 else (starts[a], starts[a + 1], 0)
        q[a] = -np.inf
        for m in range(weights.shape[0]):
            q[a] = max(q[a], picked(indices, values, begin, end, weights[m, block]))
        if widths.starts.size > 0:
            q[a] += beta * width_of(indices[begin:end], values[begin:end], widths, first + block, ridge)


class GreedyPolicy(ABC):
    """Acts greedily on the weights of a plan, in any state, seen or unseen."""

    def __init__(self, agent: SparseAgent, rule: WeightRule, seed: int) -> None:
        self._rule, self._horizon, self._slots = rule, agent.problem.horizon, agent.slots
        self._high = max(agent.reward_range[1], 0.0)
        self._rng = np.random.default_rng(seed)
        self._q = np.zeros(agent.problem.actions)

    @abstractmethod
    def _fill_values(self, step: int, starts: Ints, state: SparseVector | SparseRows) -> None:
        """Set the values of all actions; `starts` is empty for ψ(s)."""

    def act(self, step: int, state: SparseVector | SparseRows) -> int:
        rule, rng = self._rule, self._rng
        if rule.epsilon > 0.0 and rng.random() < rule.epsilon:
            return int(rng.random() * self._q.size)
        ties = self._best(step, state)
        return int(ties[0] if ties.size == 1 else ties[int(rng.random() * ties.size)])

    def distribution(self, step: int, state: SparseVector | SparseRows) -> Floats:
        ties, epsilon = self._best(step, state), self._rule.epsilon
        shares = np.full(self._q.size, epsilon / self._q.size)
        shares[ties] += (1.0 - epsilon) / ties.size
        return shares

    def _best(self, step: int, state: SparseVector | SparseRows) -> Ints:
        """Return the maximising actions, or only the first if ties are broken that way."""
        rule, q = self._rule, self._q
        self._fill_values(step, state.starts if isinstance(state, SparseRows) else _NO_ROWS, state)
        best = float(q.max())
        if rule.capped:
            best = min(best, self._high * (self._horizon - step))
        ties: Ints = np.flatnonzero(q >= best - TIE * max(1.0, abs(best)))
        return ties[:1] if rule.first else ties


class WeightPolicy(GreedyPolicy):
    """Acts on the weights of a `WeightAgent`."""

    def __init__(self, agent: WeightAgent, seed: int) -> None:
        super().__init__(agent, agent.rule, seed)
        self._weights, self._widths, self._blocks = agent.weights, agent.widths, agent.blocks

    def _fill_values(self, step: int, starts: Ints, state: SparseVector | SparseRows) -> None:
        widths, ridge = self._widths, float(self._rule.ridge)
        block = step * self._blocks if self._slots > 1 else 0
        beta = float(widths.beta[step]) if widths.beta.size else 0.0
        weights = self._weights[step]
        action_values(weights, starts, state.indices, state.values, widths, block, ridge, beta, self._q)


def mean_draw(
    regression: SparseRegression, moment: Floats, last: Floats, above: Floats, rng: np.random.Generator
) -> Floats:
    """Return ŵ without a draw."""
    return regression.mean(moment)[np.newaxis]

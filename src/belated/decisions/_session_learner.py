"""What a model of sessions has learned: all steps in the log, as columns, and the plans drawn from them.

A correction overwrites the reward of a step, and a cancellation excludes a session, so nothing has to be undone. A new
agent is started for each set of plans and given all steps at once, ordered by session and step; so a set is the same
whether the log was read at once, in pieces, or from a snapshot. With silence by age there is a column for the reward of
each age, and `_session_ages` predicts what is still to come.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from belated._util.blas import one_blas_thread
from belated._util.validate import integer, real
from belated.agents._plan_sets import LearnsSteps, PlansSets, by_action
from belated.agents._transitions import TERMINAL, Sparse, Steps, mixed
from belated.decisions._operations import LARGEST
from belated.decisions._plans import (
    FEWEST,
    MEMBERS,
    MOST_NUMBERS,
    Places,
    Plans,
    StepState,
    encode_state,
    exact_places,
    sessions_of,
)
from belated.decisions._session_ages import expected
from belated.decisions._session_settings import Encoded
from belated.decisions._settings import ModelSettings
from belated.errors import InvalidInputError
from belated.types import (
    Feedback,
    Floats,
    Ints,
    SimulatorProblem,
    SparseRows,
    SparseVector,
    Trajectory,
)

#: Maximum numbers of steps and of states' features; beyond, a sample of whole sessions is kept.
MOST_STEPS, MOST_ENTRIES = 2**20, 2**24
#: Successor codes of a step that has none yet, and of a step of a cancelled session.
OPEN, CANCELLED = -2, -3

_COLUMNS = {"session": "q", "step": "q", "state": "q", "action": "q", "after": "q", "before": "q", "reward": "d"}


class EncodedPairs(NamedTuple):
    """Feature map for joint features that are already encoded."""

    size: int
    actions: int

    def encode(self, observation: Any) -> SparseVector | SparseRows:
        assert isinstance(observation, SparseVector | SparseRows)
        return observation


class SessionLearner:
    """Takes the steps of sessions in the order of the log, and draws plans from them."""

    def __init__(self, settings: ModelSettings) -> None:
        self.settings, self._sessions = settings, sessions_of(settings)
        self._ages = [f"age {b}" for b in range(settings.ages)] if settings.ages > 1 else []
        self._kinds = _COLUMNS | dict.fromkeys(self._ages, "d")
        self._exact = exact_places(settings)
        self._terms: dict[int, int] = {}
        """The index of each term that has one."""
        self._bound = 2**64
        """Sessions whose hashed numbers reach this bound are dropped."""
        self._clear()

    def _clear(self) -> None:
        self._columns: dict[str, Any] = {name: array(kind) for name, kind in self._kinds.items()}
        self._last: dict[int, int] = {}
        """The last row of each session."""
        self._numbers: dict[bytes, int] = {}
        """The number of each state, by a digest of its features and its actions on offer."""
        self._starts, self._places, self._values = array("q", [0]), array("q"), array("d")
        self._offer_of = array("q")
        self._offers: dict[bytes, int] = {}
        """The number of each set of actions on offer, by the sorted numbers of the actions."""

    def _problem(self, *, joint: bool) -> SimulatorProblem:
        size, actions = self._exact + self.settings.encoding.hashed, len(self.settings.actions)
        features = EncodedPairs(size * actions, actions) if joint else Encoded(size)
        rewards = np.array(self._columns["reward"])
        low, high = self._sessions.reward_range  # as configured, unless a reward was outside
        low, high = float(np.nanmin(rewards, initial=low)), float(np.nanmax(rewards, initial=high))
        return SimulatorProblem(features, self._sessions.horizon, actions=actions, reward_range=(low, high))

    def __len__(self) -> int:
        """Return the number of stored steps."""
        return len(self._columns["session"])

    def step(self, session: int, step: int, state: StepState, action: int) -> None:
        """Add a step of a session with the number of its action; its state is the successor of the step before."""
        if not self._keeps(session):
            return
        number, columns, before = self._state(state), self._columns, self._last.get(session, -1)
        if before >= 0 and columns["after"][before] == OPEN:
            columns["after"][before] = number
        self._last[session] = len(self)
        for name, value in zip(_COLUMNS, (session, step, number, action, OPEN, before, np.nan), strict=True):
            columns[name].append(value)
        for name in self._ages:
            columns[name].append(np.nan)
        if len(self) > MOST_STEPS or len(self._places) > MOST_ENTRIES:
            self._thin_out()

    def end(self, session: int, *, terminal: bool, state: StepState | None = None) -> None:
        """Record the end of a session, terminal or cut in `state`; the latest end counts.

        If the state in which it was cut is unknown, the state of its last step is used.
        """
        row = self._last.get(session)
        if row is None or self._columns["after"][row] == CANCELLED:
            return
        stays = self._columns["state"][row]
        self._columns["after"][row] = TERMINAL if terminal else stays if state is None else self._state(state)

    def reward(self, session: int, step: int, reward: float | None, parts: Sequence[float] = ()) -> None:
        """Set the reward of a step, replacing any earlier one; None if it is unknown.

        With silence by age, `parts` is the reward of each completed age.
        """
        row = self._find(session, step)
        if row is not None:
            value = np.nan if reward is None else real("reward", reward, at_least=-LARGEST, at_most=LARGEST)
            self._columns["reward"][row] = value
            for age, name in enumerate(self._ages):
                self._columns[name][row] = parts[age] if age < len(parts) else np.nan

    def cancel(self, session: int) -> None:
        """Exclude a session."""
        row = self._last.get(session, -1)
        while row >= 0:
            self._columns["after"][row] = CANCELLED
            row = self._columns["before"][row]

    def forget_cancelled(self) -> None:
        """Delete the steps of cancelled sessions."""
        columns = self._arrays()
        self._refill(columns, np.flatnonzero(columns["after"] != CANCELLED), self._state_arrays())

    def _find(self, session: int, step: int) -> int | None:
        row = self._last.get(session, -1)
        while row >= 0 and self._columns["step"][row] != step:
            row = self._columns["before"][row]
        return row if row >= 0 else None

    def _keeps(self, session: int) -> bool:
        return self._bound == 2**64 or int(mixed(np.array([session], np.uint64))[0]) < self._bound

    def _state(self, state: StepState) -> int:
        """Return the number of a state, adding it if it is new."""
        for term in state.terms.tolist():
            if term >= self._exact and term not in self._terms and len(self._terms) < self.settings.encoding.hashed:
                self._terms[term] = self._exact + len(self._terms)
        offer = np.sort(state.offered).tobytes()
        digest = blake2b(state.terms.tobytes() + state.values.tobytes() + offer, digest_size=16).digest()
        number = self._numbers.get(digest)
        if number is None:
            number = self._numbers[digest] = len(self._numbers)
            places, values = self._vector(state)
            self._places.frombytes(places.tobytes())
            self._values.frombytes(values.tobytes())
            self._starts.append(len(self._places))
            self._offer_of.append(self._offers.setdefault(offer, len(self._offers)))
        return number

    def _vector(self, state: StepState) -> tuple[Ints, Floats]:
        """Return ascending, unique feature indices and their values."""
        found, exact, hashed = state.terms, self._exact, self.settings.encoding.hashed
        if found.size and found[-1] >= exact:
            known = (self._terms.get(term) for term in found.tolist())
            found = np.array(
                [
                    term if term < exact else exact + (term - exact) % hashed if place is None else place
                    for term, place in zip(found.tolist(), known, strict=True)
                ],
                np.int64,
            )
            places, inverse = np.unique(found, return_inverse=True)
            return places, np.bincount(inverse, state.values, len(places)).astype(np.float64)
        return found, state.values

    def _known(self) -> Places:
        terms = np.array(list(self._terms), np.int64)
        order = np.argsort(terms)
        return Places(self._exact, self.settings.encoding.hashed, terms[order], self._exact + order)

    def _thin_out(self) -> None:
        """Keep half of the sessions, chosen by a hash of their numbers, and the states that these visited."""
        self._bound //= 2
        columns = self._arrays()
        kept = mixed(columns["session"].astype(np.uint64)) < np.uint64(self._bound)
        self._refill(columns, np.flatnonzero(kept), self._state_arrays())
        if len(self) > MOST_STEPS or len(self._places) > MOST_ENTRIES:
            self._thin_out()

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: np.array(column) for name, column in self._columns.items()}

    def _state_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "states.starts": np.array(self._starts),
            "states.places": np.array(self._places, np.int64),
            "states.values": np.array(self._values, np.float64),
            "states.offer": np.array(self._offer_of, np.int64),
            "states.digests": np.frombuffer(b"".join(self._numbers), np.uint8).reshape(-1, 16),
            "offers": np.frombuffer(b"".join(self._offers), np.int64),
            "offers.lengths": np.array([len(each) // 8 for each in self._offers], np.int64),
        }

    def _refill(self, columns: dict[str, npt.NDArray[Any]], rows: Ints, states: dict[str, npt.NDArray[Any]]) -> None:
        """Keep only the given rows (ascending) of the columns and states."""
        after = columns["after"][rows]
        used = np.unique(np.concatenate([columns["state"][rows], after[after >= 0]]))
        number = np.full(len(states["states.offer"]), -1)
        number[used] = np.arange(len(used))
        row_of = np.full(len(columns["session"]) + 1, -1)  # the last entry is for index -1, no row
        row_of[rows] = np.arange(len(rows))
        self._clear()
        kept = {name: columns[name][rows] for name in self._kinds}
        kept["state"] = number[kept["state"]]
        kept["after"] = np.where(after >= 0, number[np.maximum(after, 0)], after)
        kept["before"] = row_of[kept["before"]]
        for name, column in kept.items():
            self._columns[name].frombytes(column.tobytes())
        self._last = dict(zip(kept["session"].tolist(), range(len(rows)), strict=True))
        starts, lengths = states["states.starts"], np.diff(states["states.starts"])[used]
        entries = _spans(starts[:-1][used], lengths)
        self._starts = array("q", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64).tobytes())
        self._places = array("q", states["states.places"][entries].tobytes())
        self._values = array("d", states["states.values"][entries].tobytes())
        self._offer_of = array("q", states["states.offer"][used].tobytes())
        digests = states["states.digests"][used].tobytes()
        self._numbers = {digests[16 * i : 16 * i + 16]: i for i in range(len(used))}
        ends = np.cumsum(states["offers.lengths"])
        offers = np.split(states["offers"], ends[:-1]) if len(ends) else []
        self._offers = {each.tobytes(): i for i, each in enumerate(offers)}

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        """Return the whole memory as named arrays."""
        return {
            **self._arrays(),
            **self._state_arrays(),
            "terms": np.array(list(self._terms), np.int64),
            "bound": np.array([self._bound - 1], np.uint64),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Continue from what `memory` returned; invalid arrays raise InvalidInputError and change nothing."""
        _check_memory(memory, self)
        self._terms = {term: self._exact + i for i, term in enumerate(memory["terms"].tolist())}
        self._bound = int(memory["bound"][0]) + 1
        self._refill(memory, np.arange(len(memory["session"])), memory)

    def draw(self, place: int) -> Plans:
        """Return a set of plans drawn from everything learned so far, which is the first `place` rows of the log.

        The set is a pure function of those rows and of the settings with their seed.
        """
        integer("place", place, at_least=0)
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.settings.seed, place])))
        joint = self.joint
        with one_blas_thread():
            plans = self.agent(joint=joint).plan_set(rng, self._members())
        if joint:
            plans = by_action(plans, len(self.settings.actions), self._exact + self.settings.encoding.hashed)
        return Plans(place, plans, self._known())

    def _members(self) -> int:
        """Return the number of plans in a set."""
        one = self._sessions.horizon * len(self.settings.actions) * (self._exact + len(self._terms))
        return max(FEWEST, min(MEMBERS, MOST_NUMBERS // max(one, 1)))

    @property
    def joint(self) -> bool:
        """Whether some states offered only some of the actions, so that plans must not rely on the others."""
        offers = [set(np.frombuffer(each, np.int64).tolist()) for each in self._offers]
        return bool(self.settings.retired) or any(len(each) < len(self.settings.actions) for each in offers)

    def agent(self, *, joint: bool) -> PlansSets:
        """Return a new agent that has learned all steps that count."""
        agent = self._sessions.start(self._problem(joint=joint))
        if isinstance(agent, LearnsSteps):
            agent.learn_steps(self.steps(joint=joint))
        else:
            agent.learn(list(self.feedback(joint=joint)))
        return agent

    def steps(self, *, joint: bool) -> Steps:
        """Return all steps with a known successor, ordered by session and step.

        With joint features, actions that were not on offer in a successor state get the row of one that was, so that
        the maximum is over available actions only. States of departure have rows only for the actions taken.
        """
        columns, states = self._counting(), self._state_arrays()
        state, after, action = columns["state"], columns["after"], columns["action"]
        marks = np.ascontiguousarray(states["states.digests"][:, :8]).view(np.uint64).ravel()
        sparse = Sparse(states["states.starts"], states["states.places"], states["states.values"])
        if joint:
            sparse, marks, state, after = self._pairs(sparse, marks, states["states.offer"], state, action, after)
        else:
            used, numbers = _renumbered(np.stack([state, after], axis=1).ravel())
            lengths = np.diff(sparse.starts)[used]
            entries = _spans(sparse.starts[:-1][used], lengths)
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            sparse = Sparse(starts, sparse.indices[entries], sparse.values[entries])
            marks, (state, after) = marks[used], numbers.reshape(-1, 2).T.copy()
        known = ~np.isnan(columns["reward"])
        return Steps(sparse, marks, columns["session"], columns["step"], state, action, after, columns["reward"], known)

    def _counting(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of the steps with a known successor, ordered by session and step."""
        columns = self._arrays()
        order = np.lexsort((columns["step"], columns["session"]))
        order = order[columns["after"][order] >= TERMINAL]
        found = {name: column[order] for name, column in columns.items()}
        if self._ages:
            found["reward"] = np.where(np.isnan(found["reward"]), self._expected(found), found["reward"])
        return found

    def _expected(self, columns: dict[str, npt.NDArray[Any]]) -> Floats:
        """Return the expected total reward of each step; NaN if no age is completed yet.

        In a session that has ended the last step is known, and the session's own rewards count there: last steps have
        separate weights and means.
        """
        came = np.stack([columns[name] for name in self._ages], axis=1)
        over = ~np.isnan(came[:, 0])
        if not over.any():
            return came[:, 0]
        session, actions = columns["session"], len(self.settings.actions)
        last = np.append(session[1:] != session[:-1], True).astype(np.int64)
        block = last * actions + columns["action"]
        rows, row = np.unique(columns["state"] * 2 * actions + block, return_inverse=True)
        states, blocks, starts = rows // (2 * actions), rows % (2 * actions), np.array(self._starts)
        lengths = np.diff(starts)[states]
        entries = _spans(starts[:-1][states], lengths)
        size = self._exact + self.settings.encoding.hashed
        places = np.array(self._places)[entries] + np.repeat(blocks * size, lengths)
        used, places = np.unique(places, return_inverse=True)
        features = scipy.sparse.csr_array(
            (np.array(self._values)[entries], places, np.concatenate([[0], np.cumsum(lengths)])),
            shape=(len(rows), len(used)),
        )
        found = np.full(len(came), np.nan)
        found[over] = expected(came[over], features, row[over], last[over])
        return found

    def _pairs(
        self, psi: Sparse, marks: npt.NDArray[np.uint64], offer_of: Ints, state: Ints, action: Ints, after: Ints
    ) -> tuple[Sparse, npt.NDArray[np.uint64], Ints, Ints]:
        """Return joint features, and state numbers: first the states of departure, then the successor states."""
        actions, size = len(self.settings.actions), self._exact + self.settings.encoding.hashed
        left, left_numbers = _renumbered(state)
        come, come_numbers = _renumbered(after)
        taken = np.zeros((len(left), actions), np.bool_)
        taken[left_numbers, action] = True
        stands_for = self._stand_ins()[offer_of[come]]  # (states, actions): which action's row is used
        source = np.concatenate([np.repeat(left, actions), np.repeat(come, actions)])
        block = np.concatenate([np.tile(np.arange(actions), len(left)), stands_for.ravel()])
        lengths = np.diff(psi.starts)[source]
        lengths[: taken.size][~taken.ravel()] = 0
        entries = _spans(psi.starts[:-1][source], lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        indices = psi.indices[entries] + np.repeat(block * size, lengths)
        come_to = np.where(come_numbers >= 0, len(left) + come_numbers, TERMINAL)
        both = np.concatenate([marks[left], mixed(marks[come])])
        return Sparse(starts, indices, psi.values[entries]), both, left_numbers, come_to

    def _stand_ins(self) -> Ints:
        """Return, for each set of actions on offer, the action whose features each action uses, shape (offers, A)."""
        actions = np.arange(len(self.settings.actions))
        retired = [self.settings.action_numbers[name] for name in self.settings.retired]
        found = np.empty((len(self._offers), actions.size), np.int64)
        for row, offer in zip(found, self._offers, strict=True):
            offered = np.frombuffer(offer, np.int64)
            still = offered[~np.isin(offered, retired)]
            still = still if still.size else offered
            row[:] = np.where(np.isin(actions, still), actions, still[0])
        return found

    def feedback(self, *, joint: bool = False) -> Iterator[Feedback]:
        """Yield the sessions with all rewards known as late trajectories, in the order of their numbers."""
        columns, states = self._counting(), self._state_arrays()
        starts, offer_of, stand_ins = states["states.starts"], states["states.offer"], self._stand_ins()
        size = self._exact + self.settings.encoding.hashed

        def state(number: int, taken: int) -> SparseVector | SparseRows:
            entries = slice(starts[number], starts[number + 1])
            indices, values = states["states.places"][entries], states["states.values"][entries]
            if not joint:
                return SparseVector(indices, values)
            block = stand_ins[offer_of[number]].copy()
            if taken >= 0:
                block[taken] = taken
            rows = np.concatenate([each * size + indices for each in block])
            return SparseRows(np.arange(len(block) + 1) * len(indices), rows, np.tile(values, len(block)))

        breaks = np.flatnonzero(np.diff(columns["session"])) + 1
        for span in np.split(np.arange(len(columns["session"])), breaks):
            rewards, actions = columns["reward"][span], columns["action"][span]
            if not span.size or np.isnan(rewards).any():
                continue
            numbers, last = columns["state"][span].tolist(), int(columns["after"][span[-1]])
            met = [state(number, action) for number, action in zip(numbers, actions.tolist(), strict=True)]
            met.append(met[-1] if last == TERMINAL else state(last, -1))
            first, episode = int(columns["step"][span[0]]), int(columns["session"][span[0]])
            yield Feedback(episode, Trajectory(met, actions, rewards, last == TERMINAL, first))


def _renumbered(met: Ints) -> tuple[Ints, Ints]:
    """Return the distinct states in `met` by first occurrence, and `met` in terms of these new numbers.

    Negative numbers stand for no state and stay as they are.
    """
    states, firsts, inverse = np.unique(met[met >= 0], return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    numbers = met.copy()
    numbers[met >= 0] = np.argsort(order)[inverse]
    return states[order], numbers


@lru_cache(maxsize=64)
def rehearse(settings: str) -> None:
    """Draw from synthetic sessions with these settings, so that everything is compiled before real ones are drawn."""
    made = ModelSettings.from_table(json.loads(settings))
    learner, encoding = SessionLearner(made), made.encoding
    if not made.names:
        return
    for number in range(4):
        context: dict[str, Any] = dict.fromkeys(encoding.features, float(number % 2))
        context |= dict.fromkeys(encoding.categories, str(number))
        learner.step(number, 0, encode_state(made, context, made.names), number % len(made.names))
        learner.reward(number, 0, 0.0)
        learner.end(number, terminal=number % 2 == 0)
    state = encode_state(made, context, made.names)
    learner.draw(0).distributions(0, state)


def _spans(begins: Ints, lengths: Ints) -> Ints:
    """Return begin, begin + 1, … of each span, concatenated."""
    total = int(lengths.sum())
    offsets = np.repeat(begins - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) if len(lengths) else lengths
    return np.asarray(offsets + np.arange(total), np.int64)


def _check_memory(memory: dict[str, npt.NDArray[Any]], learner: SessionLearner) -> None:
    """Raise InvalidInputError unless the arrays are consistent with the settings and with each other."""
    wanted = SessionLearner(learner.settings).memory()
    if set(memory) != set(wanted):
        raise InvalidInputError(f"memory must hold the arrays {sorted(wanted)}, got {sorted(memory)}")
    for name, target in wanted.items():
        given = memory[name]
        if given.dtype != target.dtype or given.ndim != target.ndim:
            raise InvalidInputError(
                f"memory[{name!r}] must be {target.dtype} with {target.ndim} axes, got {given.dtype} with {given.ndim}"
            )
    rows, states = len(memory["session"]), len(memory["states.offer"])
    actions = len(learner.settings.actions)
    size = exact_places(learner.settings) + learner.settings.encoding.hashed
    offers, starts = memory["offers.lengths"], memory["states.starts"]
    good = (
        all(len(memory[name]) == rows for name in learner._kinds)
        and _within(memory["session"], 0, 2**63 - 1)
        and _within(memory["step"], 0, sessions_of(learner.settings).horizon)
        and _within(memory["state"], 0, states)
        and _within(memory["action"], 0, actions)
        and _within(memory["after"], CANCELLED, states)
        and _within(memory["before"], -1, rows)
        and bool((memory["before"] < np.arange(rows)).all())
        and not any(np.isinf(memory[name]).any() for name in ("reward", *learner._ages))
        and len(starts) == states + 1
        and starts[0] == 0
        and starts[-1] == len(memory["states.places"]) == len(memory["states.values"])
        and bool((np.diff(starts) >= 0).all())
        and _within(memory["states.places"], 0, size)
        and bool(np.isfinite(memory["states.values"]).all())
        and _within(memory["states.offer"], 0, len(offers))
        and memory["states.digests"].shape == (states, 16)
        and bool((offers > 0).all())
        and int(offers.sum()) == len(memory["offers"])
        and _within(memory["offers"], 0, actions)
        and len(memory["terms"]) <= learner.settings.encoding.hashed
        and len(np.unique(memory["terms"])) == len(memory["terms"])
        and memory["bound"].shape == (1,)
    )
    if not good:
        raise InvalidInputError("memory must hold steps and states that are consistent with the settings")


def _within(numbers: npt.NDArray[Any], low: int, high: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= low and numbers.max() < high)

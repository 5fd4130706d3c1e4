"""`Trial`: a bandit whose rewards are events of patients, each at its own time after entry."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from belated._kernels.jit import kernel
from belated._util.validate import array, flag, indices, integer, refuse
from belated.environments._bandit import Bandit
from belated.environments._kernels import cumulated, first_above
from belated.types import Floats, Ints, TablePolicy, Trajectory


class Courses(NamedTuple):
    """The arrays of a trial for compiled code."""

    start: Floats
    """Cumulative sums of the distribution of contexts, shape (S,)."""
    patients: Ints
    """The patients that may be drawn for a context and an arm, shape (S, A, n)."""
    chances: Floats
    """Cumulative sums of their probabilities, shape (S, A, n)."""
    ages: Floats
    """Time of each patient's events after entry, in windows, shape (patients, events); inf for never."""
    amounts: Floats
    """The reward of each event, or the change of the signal, shape (patients, events)."""
    is_signal: Ints
    """1 if an event changes the signal, 0 if it is a reward, shape (patients, events)."""
    entries: Floats
    """When patients enter within a period, in windows, ascending from 0."""
    period: float
    """Length of a period, in windows."""
    means: Floats
    """Mean rewards, shape (S, A)."""


class Trial(Bandit):
    """A bandit with its own delays: a patient of the chosen arm is drawn, and events are reported as they happen.

    A round is a patient who enters; an action is the arm. The reward is the sum of the events within the window, and
    the absence of events is never reported. In `run` the delay distribution is added to these delays, usually
    `Constant(0)`. The agents that learn from silence are `LearnByAge`, `OTFLinUCB` and `OTFLinTS`. Your own agent gets
    a `Feedback` for each event, whose trajectory has the part "rewards".

    With `signals`, there are also events without a reward that may precede one: a laboratory value, a first visit. They
    are reported with the part "signal", to `LearnByAge(signals=True)` and to your own agents.

    With `told`, a patient has a single report of the whole reward, once it is certain: at the event if there can be
    only one, otherwise at the end of the window. Every bandit agent can learn from that.

    `belated.environments.trials` has recorded and generated trials.

    Parameters
    ----------
    patients
        The patients that may be drawn for a context and an arm: rows of `ages`, shape (contexts, arms, n).
    chances
        Their probabilities, shape (contexts, arms, n).
    ages
        When the events of a patient happen after entry, in windows, within (0, 1] or inf, shape (patients, events).
    amounts
        The rewards of these events, of the same shape.
    rounds
        Number of patients that enter during a window.
    features
        φ(context, arm), shape (contexts, arms, d); one-hot by default.
    entries
        When patients enter within a period, in windows: ascending from 0, below `period`. By default they enter evenly.
    period
        Length of that period.
    told
        Whether the end of the window is reported, too.
    signals
        Ages and changes of the signal, each of shape (patients, n); inf for no change. By default there is no signal.
    name
        Used in labels and file names.

    Examples
    --------
    >>> trial = Trial([[[0, 1], [1, 2]]], [[[0.5, 0.5], [0.9, 0.1]]], ages=[[0.5], [np.inf], [0.25]],
    ...               amounts=[[1.0], [1.0], [1.0]], rounds=100)
    >>> trial.rewards[0].tolist(), trial.window
    ([[0.5, 0.1]], 99)
    """

    def __init__(
        self,
        patients: Any,
        chances: Any,
        ages: Any,
        amounts: Any,
        rounds: int,
        features: Any = None,
        entries: Any = None,
        period: float | None = None,
        told: bool = False,
        signals: tuple[Any, Any] | None = None,
        name: str = "trial",
    ) -> None:
        given = _ages("ages", ages)
        happens = np.isfinite(given)
        self._amounts = array("amounts", amounts, given.shape)
        self._patients = indices("patients", patients, (None, None, None), len(given))
        self._chances = array("chances", chances, self._patients.shape)
        sums = self._chances.sum(axis=-1)
        if (self._chances < 0).any() or not np.allclose(sums, 1.0):
            raise refuse("chances", chances, "probabilities that add up to 1 for each context and arm")
        self._rounds = integer("rounds", rounds, at_least=1)
        self._entries = array("entries", [0.0] if entries is None else entries, (None,))
        self._period = 1.0 / self._rounds if period is None else float(period)
        if self._entries.size == 0 or self._entries[0] != 0.0 or (np.diff(self._entries) < 0).any():
            raise refuse("entries", entries, "times that ascend from 0")
        if not self._entries[-1] < self._period < np.inf:
            raise refuse("period", period, f"a number above {self._entries[-1]:g}, the last of the entries")
        self._told = flag("told", told)
        total = np.where(happens, self._amounts, 0.0).sum(axis=1)
        self._totals = array("totals", total, (len(given),))
        if self._told:
            certain = given.min(axis=1, initial=np.inf) if given.shape[1] == 1 else np.full(len(given), np.inf)
            given = np.where(np.isfinite(certain), certain, 1.0)[:, np.newaxis]
            self._amounts = array("amounts", total[:, np.newaxis], given.shape)
        is_signal = np.zeros(given.shape, np.int64)
        self._range = np.concatenate([self._amounts.ravel(), self._totals, [0.0, 1.0]])
        if signals is not None:
            if self._told:
                raise refuse("signals", "some", "None if told is True")
            when = _ages("the ages of signals", signals[0])
            changes = array("the changes of signals", signals[1], (len(given), when.shape[1]))
            given, self._amounts = np.hstack([given, when]), np.hstack([self._amounts, changes])
            is_signal = np.hstack([is_signal, np.ones(when.shape, np.int64)])
        order = np.argsort(given, axis=1, kind="stable")  # the last report of a patient is the last finite one
        self._ages = np.take_along_axis(given, order, axis=1)
        self._is_signal: Ints = np.take_along_axis(is_signal, order, axis=1)
        self._ages.flags.writeable = self._is_signal.flags.writeable = False
        self._amounts = array("amounts", np.take_along_axis(self._amounts, order, axis=1), given.shape)
        contexts, arms, _ = self._patients.shape
        means = (self._chances * total[self._patients]).sum(axis=-1)
        one_hot = np.eye(contexts * arms).reshape(contexts, arms, -1)
        super().__init__(one_hot if features is None else features, means, name=f"{name}-told" if told else name)

    @property
    def told(self) -> bool:
        """Whether the end of the window is reported, too."""
        return self._told

    @property
    def signals(self) -> bool:
        """Whether some reports are signals."""
        return bool(self._is_signal.any())

    @property
    def window(self) -> int:
        """The longest delay of a report, in rounds: with this window an agent misses nothing."""
        entered = self._entries.size
        return max(int(round_delay(self.courses, k, 1.0)) for k in range(entered))

    @property
    def _reward_range(self) -> tuple[float, float]:
        """The range of single reports and of their sums."""
        return float(self._range.min()), float(self._range.max())

    @property
    def draws(self) -> int:
        """Random numbers per episode: the context, and the patient."""
        return 2

    @cached_property
    def courses(self) -> Courses:
        """The arrays for compiled code."""
        return Courses(
            start=cumulated(self._start),
            patients=self._patients,
            chances=cumulated(self._chances),
            ages=self._ages,
            amounts=self._amounts,
            is_signal=self._is_signal,
            entries=self._entries,
            period=self._period,
            means=self._rewards[0],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "courses"}

    def draw(self, state: int, action: int, rng: np.random.Generator) -> int:
        """Draw a patient of the context `state` and the arm `action`."""
        return draw_patient(self.courses, state, action, rng)

    def reports(self, patient: int, episode: int) -> list[tuple[int, float, bool]]:
        """Return delay and amount of the events of a patient who enters in round `episode`, and which are signals."""
        found = zip(*(each[patient].tolist() for each in (self._ages, self._amounts, self._is_signal)), strict=True)
        return [
            (int(round_delay(self.courses, episode, age)), amount, bool(is_signal))
            for age, amount, is_signal in found
            if age <= 1.0
        ]

    def total(self, patient: int) -> float:
        """Return the reward of a patient: the sum of the events within the window."""
        return float(self._totals[patient])

    def transition(
        self, step: int, state: int, action: int, rng: np.random.Generator, *, episode: int = 0
    ) -> tuple[int, float]:
        return 0, self.total(self.draw(state, action, rng))

    def rollout(
        self, policy: TablePolicy, rng: np.random.Generator, *, episode: int = 0, start: int | None = None
    ) -> Trajectory:
        """Draw a patient, in the context `start` if given, and return the outcome of the arm chosen by `policy`."""
        state = self.first_state(rng, episode=episode) if start is None else start
        action = int(self._checked(policy)[0, state])
        after, reward = self.transition(0, state, action, rng)
        return Trajectory(np.array([state, after]), np.array([action]), np.array([reward]))

    def describe(self) -> dict[str, Any]:
        """Return a digest of all arrays."""
        digest = hashlib.sha256(f"{self._told} {self._period!r}".encode())
        for table in (*self.courses[:7], self._totals, self._features):
            digest.update(np.ascontiguousarray(table).tobytes())
        return {"trial": self._name, "arrays": digest.hexdigest()}


def _ages(name: str, ages: Any) -> Floats:
    given: Floats = np.asarray(ages, np.float64)
    happens = np.isfinite(given)
    if given.ndim != 2 or ((given <= 0) | (given > 1)).any(where=happens) or np.isnan(given).any():
        raise refuse(name, ages, "of shape (patients, events), within (0, 1] or inf")
    return given


@kernel
def round_delay(trial: Courses, episode: int, age: float) -> int:
    """Return the delay, in rounds, of an event at `age` of the patient who enters in round `episode`.

    It is known in the first round k' that begins no earlier than the event, so the delay is k' − k − 1.
    """
    size = trial.entries.size
    moment = trial.entries[episode % size] + age
    periods = int(np.floor(moment / trial.period + 1e-9))  # an integer up to rounding
    rest = moment - periods * trial.period
    later = periods * size
    for i in range(size):
        if trial.entries[i] < rest - 1e-9 * trial.period:
            later += 1
    return max(later - episode % size - 1, 0)


@kernel
def draw_patient(trial: Courses, state: int, action: int, rng: np.random.Generator) -> int:
    """Draw a patient; takes one random number."""
    return int(trial.patients[state, action, first_above(trial.chances[state, action], rng.random())])

"""The episode loop of a trial: a patient has any number of reports, each with its own delay.

As elsewhere in the runner there are two implementations, `TrialStage` with a `ReportQueue` in Python for any agent and
`play_trial` for compiled ones, which give the same rows. A run of a trial takes less than a second, so it is repeated
rather than resumed.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from belated._kernels.jit import borrowed, entry_point
from belated._util.validate import integer
from belated.agents._base import ALL, BATCH, REWARDS, SIGNAL, Arrival, Record, learn, plan, settle
from belated.environments._kernels import first_above
from belated.environments._trial import Courses, Trial, draw_patient, round_delay
from belated.runner._array_queue import ArrayQueue, send, take_first
from belated.runner._rows import BlockRows
from belated.types import Floats, Ints, TablePolicy, Trajectory

#: The same constant as in `delays`; kernels use constants of their own module.
NEVER = int(np.iinfo(np.int64).max)


class Report(NamedTuple):
    """One report about a patient."""

    delay: int
    trajectory: Trajectory


class Course(NamedTuple):
    """The course of one patient."""

    reward: float
    reports: list[Report]


def drawn(trial: Trial, table: TablePolicy, episode: int, start: int, rng: np.random.Generator) -> Course:
    """Draw the patient of a round, and return the reports about it."""
    action = table.act(0, start)
    patient = trial.draw(start, action, rng)
    part = "all" if trial.told else "rewards"
    states, actions = np.array([start, 0]), np.array([action])
    reports = [
        Report(delay, Trajectory(states, actions, np.array([amount]), False, 0, "signal" if is_signal else part))
        for delay, amount, is_signal in trial.reports(patient, episode)
    ]
    return Course(trial.total(patient), reports)


class ReportQueue:
    """Reports in flight; an episode may have several."""

    def __init__(self) -> None:
        self._due: list[tuple[int, int, int, Trajectory]] = []
        self._sent = 0

    def add(self, episode: int, delay: int, item: Trajectory) -> None:
        self._sent += 1
        heapq.heappush(self._due, (episode + delay + 1, episode, self._sent, item))

    def arrived(self, episode: int) -> list[tuple[int, Trajectory]]:
        """Return the reports that arrive before `episode` is planned, earliest first."""
        found = []
        while self._due and self._due[0][0] <= integer("episode", episode):
            _, origin, _, item = heapq.heappop(self._due)
            found.append((origin, item))
        return found


@entry_point
def play_trial(
    record: Record,
    trial: Courses,
    queue: ArrayQueue,
    rows: BlockRows,
    ended: Ints,
    env_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    scratch: tuple[Ints, Floats, Ints, Ints, Floats],
    delays: Ints,
    told: bool,
    first: int,
    total: int,
) -> None:
    """Play a block; all state is in the arguments. `ended` counts patients by when their last report arrives."""
    record, trial, queue, rows, ended = (
        borrowed(record),
        borrowed(trial),
        borrowed(queue),
        borrowed(rows),
        borrowed(ended),
    )
    delays = borrowed(delays)
    policy, _, states, actions, rewards = borrowed(scratch)
    usual = ALL if told else REWARDS
    for k in range(delays.shape[0]):
        episode, learned = first + k, 0
        while queue.size[0] > 0 and queue.heap[0, 0] <= episode:
            origin = queue.heap[0, 1]
            slot = take_first(queue)
            part = SIGNAL if queue.states[slot, 1] == 1 else usual
            learn(record, Arrival(origin, 0, queue.states[slot], queue.actions[slot], queue.rewards[slot], False, part))
            learned += 1
            if learned % BATCH == 0:
                settle(record)
        settle(record)
        state = first_above(trial.start, env_rng.random())
        plan(record, agent_rng, state, policy)
        action = policy[0, state]
        patient = draw_patient(trial, state, action, env_rng)
        states[0], actions[0] = state, action
        last, earned = NEVER, 0.0
        for i in range(trial.ages.shape[1]):
            if trial.ages[patient, i] > 1.0:
                break
            late = round_delay(trial, episode, trial.ages[patient, i])
            late = late + delays[k, 0] if delays[k, 0] < NEVER - late else NEVER
            rewards[0] = trial.amounts[patient, i]
            states[1] = trial.is_signal[patient, i]  # a bandit has no next state: this marks a signal in the queue
            if states[1] == 0:
                earned += trial.amounts[patient, i]
            if late < total - episode - 1:  # reports after the end need not be stored
                send(queue, episode + late + 1, episode, states, actions, rewards)
            last = late
        if last < total - episode - 1:
            ended[episode + last + 1] += 1
        rows.start[k] = state
        rows.delay[k] = last
        rows.arrived[k] = ended[episode]
        rows.value[k] = trial.means[state, action]
        rows.sampled_return[k] = earned

"""Assembling steps that arrive one by one, in any order, into the trajectories that agents learn from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from belated._util.validate import integer, real, refuse
from belated.gymnasium._in_flight import Transition
from belated.types import FeatureMap, Feedback, Problem, SimulatorProblem, Trajectory


class Piece(NamedTuple):
    """Consecutive steps of one episode."""

    episode: int
    step: int
    """The first step; 0 for a whole trajectory."""
    trajectory: Trajectory


def pieces(
    arrived: Sequence[Transition], features: FeatureMap | None, *, first_action: int = 0, part: str = "all"
) -> list[Piece]:
    """Return the arrived steps as maximal pieces of episodes, in the order of episodes and steps.

    Whole trajectories that arrive together stay whole; single rewards become pieces of consecutive steps. A piece is
    marked as terminated only if it includes the step that ended its episode in a terminal state. `first_action` is the
    `start` of the action space. `features` is None if observations are rows of a table. `part` says what to learn: the
    "states" of steps whose rewards have not arrived, the "rewards" of steps whose states were learned before, or "all"
    of both.

    >>> from belated.features import OneHot
    >>> steps = [Transition(4, step, step, 0, 1.0, step + 1, False, False) for step in (0, 1, 5)]
    >>> [(piece.episode, piece.step, len(piece.trajectory.actions)) for piece in pieces(steps, OneHot(sizes=(9,)))]
    [(4, 0, 2), (4, 5, 1)]
    """
    found: list[Piece] = []
    run: list[Transition] = []
    for late in sorted(arrived, key=lambda each: each[:2]):
        if run and (late.episode, late.step) != (run[-1].episode, run[-1].step + 1):
            found.append(_piece(run, features, first_action, part))
            run = []
        run.append(late)
    return [*found, _piece(run, features, first_action, part)] if run else found


def _piece(run: list[Transition], features: FeatureMap | None, first_action: int, part: str) -> Piece:
    observations = [run[0].observation, *(late.next_observation for late in run)]
    trajectory = Trajectory(
        states=np.array(observations) if features is None else [features.encode(each) for each in observations],
        actions=np.array([int(late.action) - first_action for late in run], dtype=np.int64),
        rewards=np.array([late.reward for late in run]),
        terminated=run[-1].terminated,
        first=run[0].step,
        part=part,
    )
    return Piece(run[0].episode, run[0].step, trajectory)


class Assembler:
    """Collects the steps of each episode, and returns its trajectory once all of them have arrived.

    It works for all built-in agents, on a table or in a simulator. An episode is complete when its last step
    (terminated, truncated, or the last of the horizon) and all earlier steps have arrived with their rewards.

    An episode with a missing step stays here until `give_up` is called. If a missing reward is to count with some
    value, the step must be known: `see` takes steps as they are played, before their rewards.

    >>> from belated import RiverSwim
    >>> assembler = Assembler(RiverSwim(states=3, horizon=2).problem)
    >>> first, last = Transition(0, 0, 0, 1, 0.0, 1, False, False), Transition(0, 1, 1, 1, 0.5, 2, False, True)
    >>> assembler.add([last]), assembler.incomplete
    ([], 1)
    >>> [late.trajectory.states.tolist() for late in assembler.add([first])]
    [[0, 1, 2]]
    """

    def __init__(self, problem: Problem, *, first_action: int = 0) -> None:
        if not isinstance(problem, Problem):
            raise refuse("problem", problem, "the Problem that the agent was started for")
        self._problem, self._first_action = problem, integer("first_action", first_action)
        self._steps: dict[int, dict[int, Transition]] = {}
        self._begin = 0

    @property
    def incomplete(self) -> int:
        """Number of episodes that are partly here."""
        return len(self._steps)

    def add(self, arrived: Iterable[Transition]) -> list[Feedback]:
        """Add steps, and return the episodes that are complete now; ignores steps of abandoned episodes."""
        batch: dict[tuple[int, int], Transition] = {}
        for late in arrived:
            place = _checked(late, self._problem.horizon)
            real("the reward of a step", late.reward)
            known = self._steps.get(late.episode, {}).get(late.step)
            if place in batch or (known is not None and not math.isnan(known.reward)):
                raise refuse("arrived", late, "steps that have not arrived before")
            batch[place] = late
        self._keep(batch)
        whole = [episode for episode in sorted({episode for episode, _ in batch}) if self._is_whole(episode)]
        return [feedback for episode in whole for feedback in self._feedback(episode)]

    def see(self, played: Iterable[Transition]) -> None:
        """Add steps whose rewards have not arrived; the reward fields are ignored."""
        steps = {_checked(step, self._problem.horizon): step._replace(reward=math.nan) for step in played}
        known = [place for place in steps if place[1] in self._steps.get(place[0], {})]
        if known:
            raise refuse("played", steps[known[0]], "steps that have not been seen and have not arrived")
        self._keep(steps)

    def _keep(self, steps: dict[tuple[int, int], Transition]) -> None:
        for (episode, step), late in steps.items():
            if episode >= self._begin:
                self._steps.setdefault(episode, {})[step] = late

    def give_up(self, before: int, *, reward: float | None = None) -> list[Feedback]:
        """Return what is known about the episodes below `before`, and stop waiting for them.

        With a `reward`, steps whose reward has not arrived count with that reward, for settings where only successes
        are reported. Without it, such steps are left out, and the rest of the episode is returned in pieces.
        """
        before = integer("before", before)
        paid = math.nan if reward is None else real("reward", reward)
        found: list[Feedback] = []
        for episode in sorted(episode for episode in self._steps if episode < before):
            known = self._steps[episode].values()
            told = [late._replace(reward=paid) if math.isnan(late.reward) else late for late in known]
            self._steps[episode] = {late.step: late for late in told if not math.isnan(late.reward)}
            if self._steps[episode]:
                found += self._feedback(episode)
            else:
                del self._steps[episode]
        self._begin = max(self._begin, before)
        return found

    def _is_whole(self, episode: int) -> bool:
        steps = self._steps.get(episode, {})
        last = max(steps, default=-1)
        if last + 1 != len(steps) or not steps:
            return False
        ended = steps[last].terminated or steps[last].truncated or last + 1 == self._problem.horizon
        return ended and not any(math.isnan(late.reward) for late in steps.values())

    def _feedback(self, episode: int) -> list[Feedback]:
        """Remove and return the steps of an episode: one trajectory, or several if steps are missing."""
        steps = self._steps.pop(episode)
        played = [steps[step] for step in sorted(steps)]
        features = self._problem.features if isinstance(self._problem, SimulatorProblem) else None
        found = pieces(played, features, first_action=self._first_action)
        return [Feedback(episode, piece.trajectory) for piece in found]


def _checked(late: Transition, horizon: int) -> tuple[int, int]:
    """Return the episode and the step, after checking them."""
    if not isinstance(late, Transition):
        raise refuse("arrived", late, 'made of Transition, as info["arrived"] is')
    episode = integer("the episode of a step", late.episode, at_least=0)
    return episode, integer("the number of a step", late.step, at_least=0, at_most=horizon - 1)

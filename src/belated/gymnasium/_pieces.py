"""From transitions that have arrived to what the agents on features learn from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from belated.gymnasium._in_flight import Transition
from belated.types import FeatureMap, Trajectory


class Piece(NamedTuple):
    """Consecutive steps of one episode."""

    episode: int
    step: int
    """The first of them; 0 for a whole trajectory."""
    trajectory: Trajectory


def pieces(
    arrived: Sequence[Transition], features: FeatureMap | None, *, first_action: int = 0, part: str = "all"
) -> list[Piece]:
    """Return what has arrived as pieces of episodes, as long as possible, in the order of episodes and steps.

    Whole trajectories that arrive together stay whole; single rewards become pieces of those steps that follow one
    another. A piece is marked as terminated only if it holds the step that ended its episode in a terminal state.
    `first_action` is the `start` of the action space. `features` is None where
    observations are rows of a table. `part` says what is to be learned: the "states" of steps whose
    rewards have not arrived, the "rewards" of steps whose states were learned before, or "all" of both.

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

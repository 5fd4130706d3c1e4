"""Renders a state of a finite MDP as text and as an image: rows of cells, with the agent in one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]

#: In pixels: a cell, the line between two cells, and the minimum width, so that the time bar is visible.
CELL, LINE, MINIMUM = 28, 2, 120
PAPER, INK, AGENT, TIME = (250, 250, 247), (200, 200, 195), (38, 84, 168), (224, 150, 40)


class Scene(NamedTuple):
    name: str
    states: int
    columns: int
    state: int
    step: int
    last: tuple[int, float] | None
    """The last action and its reward."""


def as_text(scene: Scene, horizon: int) -> str:
    """Return a status line, and rows of states with the agent as @.

    >>> print(as_text(Scene("riverswim-5", 5, 5, 2, 3, (1, 0.0)), 20))
    riverswim-5: step 3 of 20, action 1 paid 0
    ..@..
    """
    done = "" if scene.last is None else f", action {scene.last[0]} paid {scene.last[1]:g}"
    cells = ["@" if state == scene.state else "." for state in range(scene.states)]
    rows = ["".join(cells[first : first + scene.columns]) for first in range(0, scene.states, scene.columns)]
    return "\n".join([f"{scene.name}: step {scene.step} of {horizon}{done}", *rows])


def as_picture(scene: Scene, horizon: int) -> Picture:
    """Return rows of cells, the agent's filled, and below them a bar for the steps taken."""
    rows = -(-scene.states // scene.columns)
    pitch = CELL + LINE
    width = max(scene.columns * pitch + LINE, MINIMUM)
    picture = np.full((rows * pitch + LINE + CELL // 2, width, 3), PAPER, dtype=np.uint8)
    for state in range(scene.states):
        row, column = divmod(state, scene.columns)
        top, left = row * pitch, column * pitch
        picture[top : top + pitch + LINE, left : left + pitch + LINE] = INK
        inside = picture[top + LINE : top + pitch, left + LINE : left + pitch]
        inside[:] = PAPER
        if state == scene.state:
            inside[4:-4, 4:-4] = AGENT
    picture[-CELL // 4 :, : round(width * scene.step / horizon)] = TIME
    return picture

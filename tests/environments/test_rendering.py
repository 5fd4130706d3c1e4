"""A state as text and as a picture."""

from __future__ import annotations

import numpy as np
import pytest

from belated.environments import RiverSwim, as_gymnasium
from belated.environments._finite_env import AGENT, CELL, LINE, TIME, DeepSeaEnv, Scene, as_picture, as_text
from belated.errors import UnknownNameError


def test_text_and_pictures() -> None:
    env = as_gymnasium(RiverSwim(states=4), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "riverswim-4: step 0 of 20\n@..."
    env.step(np.int64(0))
    assert env.render() == "riverswim-4: step 1 of 20, action 0 paid 0.005\n@..."
    sea = DeepSeaEnv(3, render_mode="rgb_array")
    sea.reset(seed=0)
    first = sea.render()
    assert (first.dtype, first.shape[2]) == (np.uint8, 3)
    sea.step(np.int64(1))
    assert not np.array_equal(first, sea.render())
    assert as_gymnasium(RiverSwim()).render() is None
    with pytest.raises(UnknownNameError, match="render_mode must be one of 'ansi', 'rgb_array', got 'human'"):
        DeepSeaEnv(3, render_mode="human")


def test_states_stand_in_rows_of_so_many_columns() -> None:
    scene = Scene("grid", states=5, columns=2, state=3, step=1, last=None)
    assert as_text(scene, 4).splitlines() == ["grid: step 1 of 4", "..", ".@", "."]


@pytest.mark.parametrize("state", range(5))
def test_only_the_cell_of_the_agent_is_filled(state: int) -> None:
    picture = as_picture(Scene("grid", states=5, columns=2, state=state, step=1, last=None), horizon=4)
    cells = np.argwhere((picture == AGENT).all(axis=2)) // (CELL + LINE)
    assert np.unique(cells, axis=0).tolist() == [[state // 2, state % 2]]


@pytest.mark.parametrize("step", [0, 1, 3, 4])
def test_the_bar_is_as_long_as_the_share_of_steps_taken(step: int) -> None:
    picture = as_picture(Scene("grid", states=5, columns=2, state=0, step=step, last=None), horizon=4)
    bar = (picture[-1] == TIME).all(axis=1)
    assert bar.sum() == bar.size * step // 4
    assert bar[: bar.sum()].all()

"""The programs of docs/examples run, and do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripts import load

from belated import Constant, Poisson

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


@pytest.mark.parametrize("distribution", [Poisson(5), Constant(0)])
def test_a_dqn_as_it_is_learns_from_what_has_arrived(distribution: Any) -> None:
    reason = "needs Stable-Baselines3, which with PyTorch is too large for the environment of the tests"
    pytest.importorskip("stable_baselines3", reason=reason)
    pytest.importorskip("torch").set_num_threads(1)
    example = load("docs/examples/late_dqn.py")
    model, late, monitor = example.make(distribution)
    assert type(model) is example.DQN
    model.learn(1500)
    buffer, lengths = model.replay_buffer, monitor.get_episode_lengths()
    stored, played, kept = buffer.size(), model.num_timesteps, len(model.env.envs[0]._arrived)
    assert 0 < stored == played - late.in_flight - kept < played
    assert (buffer.rewards[:stored] == 1.0).all(), "the 0.0 of a withheld reward must never be learned"
    ended = np.flatnonzero(buffer.dones[:stored, 0])
    assert set(np.diff(ended, prepend=-1).tolist()) <= set(lengths), "whole episodes, each as long as it was played"
    assert model._n_updates > 0
    if distribution == Constant(0):
        assert np.diff(ended, prepend=-1).tolist() == lengths


def test_the_howto_shows_the_program() -> None:
    page = (ROOT / "docs" / "howto" / "gymnasium.md").read_text(encoding="utf-8")
    shown = page.split("docs/examples/late_dqn.py")[1].split("```python\n")[1].split("```")[0]
    program = (EXAMPLES / "late_dqn.py").read_text(encoding="utf-8")
    for part in shown.strip().split("\n\n\n"):
        assert part in program

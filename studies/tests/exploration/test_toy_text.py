"""Toy text: what is played, for how long."""

from __future__ import annotations

import pytest

from belated_studies.exploration.toy_text import problems


def test_episodes_and_bars() -> None:
    assert {each.name: (each.episodes, each.bars["poisson-10"].value) for each in problems()} == {
        "FrozenLake 8×8, slippery": (1000, 0.86),
        "FrozenLake 4×4, slippery": (600, 0.70),
        "CliffWalking": (300, -17.0),
        "Taxi": (1000, 7.0),
    }


def test_the_worlds_are_those_of_the_names() -> None:
    worlds = {each.label: each.world for each in problems()}
    assert 0.86 < worlds["lake-8-slippery"].optimal_value < 1.0
    assert 0.70 < worlds["lake-4-slippery"].optimal_value < 0.86
    assert worlds["cliff"].optimal_value == pytest.approx(-13.0)
    assert worlds["taxi"].horizon == 200

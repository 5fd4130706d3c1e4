from __future__ import annotations

import io
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import belated
from belated._cli.tables import (
    KINDS,
    catalogue,
    describe_file,
    settings,
    spark,
)
from belated._util import plugins as named
from belated.errors import InvalidInputError


def test_a_mini_curve_shows_the_means_of_equal_parts() -> None:
    assert spark([0.0, 0.0, 8.0, 8.0, 4.0, 4.0], 3) == "▁█▅"
    assert spark(np.linspace(0, 1, 1000), 8) == "▁▂▃▄▅▆▇█"
    assert len(spark(np.linspace(0, 1, 1001), 40)) == 40


def test_a_mini_curve_is_not_stretched() -> None:
    assert spark([1.0, 2.0], 10) == "▁█"
    assert spark([], 10) == ""


def test_a_mini_curve_on_a_given_scale() -> None:
    assert spark([0.5, 2.0, -1.0], 3, low=0.0, high=1.0) == "▅█▁"
    assert spark([3.0, 3.0], 2) == "▁▁"


@pytest.mark.parametrize(
    ("values", "width", "message"),
    [([float("nan")], 4, "values must be finite"), ([1.0], 0, "width must be an integer >= 1")],
)
def test_a_mini_curve_refuses(values: list[float], width: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        spark(values, width)


def shown(path: Path) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(describe_file(path))
    return out.getvalue()


def test_rows_are_told_with_what_they_depend_on(tmp_path: Path) -> None:
    agents = {"random": belated.RandomPolicy()}
    world = belated.RiverSwim(states=3)
    belated.run(world, agents, belated.Constant(2), episodes=10, seeds=1, folder=tmp_path, progress=False)
    text = shown(next(tmp_path.rglob("*.parquet")))
    assert "rows of one run" in text
    assert "distribution = constant, value = 2" in text
    assert "7 of 10 trajectories" in text


def test_an_agent_is_told_with_its_memory(tmp_path: Path) -> None:
    belated.save_agent(tmp_path / "a.npz", belated.DelayedPSVI().start(belated.RiverSwim(states=3, horizon=4).problem))
    text = shown(tmp_path / "a.npz")
    assert "3 states, 2 actions, 6 features, 4 steps" in text
    assert "not saved" in text
    assert "4 × 6 × 6" in text


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(belated.InvalidInputError, match=r"must be a \.parquet file"):
        describe_file(tmp_path / "notes.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_is_listed_with_its_settings(kind: str) -> None:
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue(kind))
    assert [name for name in KINDS[kind] if f" {name} " not in out.getvalue()] == []


def test_what_installed_packages_bring_is_listed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("weekly", "belated.delays:Constant", "belated.delays")
    monkeypatch.setattr(named, "entry_points", lambda group: [point] if group == point.group else [])
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue("delays"))
    assert out.getvalue().count("value") > 1
    assert " weekly " in out.getvalue()


def test_a_package_that_cannot_be_imported_hides_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("broken", "nowhere:Nobody", "belated.delays")
    monkeypatch.setattr(named, "entry_points", lambda group: [point] if group == point.group else [])
    out = io.StringIO()
    Console(file=out, width=200).print(catalogue("delays"))
    assert "distribution 'broken' cannot be imported: No module named 'nowhere'" in out.getvalue()
    assert " poisson " in out.getvalue()


def test_settings_have_their_defaults() -> None:
    assert settings(belated.EpsilonGreedy) == ["ridge=1.0", "shared=False", "epsilon=0.1"]
    assert settings(belated.Poisson) == ["mean"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(belated.UnknownNameError, match="did you mean 'delays'"):
        catalogue("delay")

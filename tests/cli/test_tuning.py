"""`belated tune`: a search in a file, one by name, and none."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from commands import call, refused

from belated import DelayedPSVI, Poisson, RiverSwim
from belated._cli import tuning
from belated.runner import Rung, Search, Space

FILE = """
name = "mine"
episodes = 30
seeds = 1
environments.river = {environment = "riverswim", states = 3}
delays.late = {distribution = "poisson", mean = 5}
agents.psvi = {algorithm = "psvi", scale = {choices = [0.5, 2.0]}}
tune.seeds = 2
"""
WRITTEN = {"winners.json", "search.csv", "search.png"}


def small() -> Search:
    spaces = {"psvi": Space(DelayedPSVI(), {"scale": [0.5, 2.0]})}
    return Search("chain", RiverSwim(), Poisson(5), spaces, [Rung(30, [50, 51], keep=1)], report_seeds=[0])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("chain", "nowhere:chain", "belated.searches")]
    monkeypatch.setattr(tuning, "entry_points", lambda group: points)
    monkeypatch.setattr(EntryPoint, "load", lambda point: small)


@pytest.mark.usefixtures("installed")
def test_a_search_of_an_installed_package_is_found_by_its_name(tmp_path: Path) -> None:
    result = call("tune", "chain", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "chain").iterdir()} == WRITTEN
    assert 'psvi: {"algorithm": "psvi"' in result.output


@pytest.mark.usefixtures("installed")
def test_an_unknown_search_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    message = refused(call("tune", "chian", "--out", tmp_path))
    assert "'chain'" in message
    assert ".toml" in message
    assert not list(tmp_path.iterdir())


def test_without_the_studies_there_are_no_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "entry_points", lambda group: [])
    assert "pip install belated-studies" in refused(call("tune", "chain", "--out", tmp_path))


def test_a_search_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE, encoding="utf-8")
    result = call("tune", tmp_path / "mine.toml", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "mine").iterdir()} == WRITTEN

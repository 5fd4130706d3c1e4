"""The candidates of an agent: grids are tested with the search in test_tuning.py, samplers here."""

from __future__ import annotations

import builtins
import math
from typing import Any

import pytest

import belated
from belated.errors import MissingExtraError
from belated.runner._tuning import ROUNDS, SAMPLERS, Choices, Range, Sampled, Space

RANGES: dict[str, Choices | Range] = {
    "scale": Range(low=0.01, high=100.0, log=True),
    "draws": Range(low=1, high=5),
    "ties": Choices(("random", "first")),
}


def sampled(sampler: str = "tpe", count: int = 24) -> Sampled:
    return Sampled(base={"algorithm": "psvi", "noise": 0.5}, ranges=RANGES, sampler=sampler, most=count)


def loss(point: dict[str, Any]) -> float:
    """Least at scale = 1 with three draws."""
    return float(abs(math.log10(point["scale"])) + abs(point["draws"] - 3) + (point["ties"] == "first"))


def play(space: Sampled) -> list[list[dict[str, Any]]]:
    rounds, asked = space.rounds(), []
    points = next(rounds)
    while True:
        asked.append(points)
        try:
            points = rounds.send([loss(point) for point in points])
        except StopIteration:
            return asked


def test_a_grid_of_plain_values_is_that_of_settings() -> None:
    grid: dict[str, list[Any]] = {"scale": [0.1, 1.0], "draws": [1, 2]}
    plain, settings = Space({"algorithm": "psvi", "noise": 0.5}, grid), Space(belated.DelayedPSVI(noise=0.5), grid)
    assert plain.candidates() == settings.candidates()
    assert plain.specification(plain.points()[3]) == {"algorithm": "psvi", "noise": 0.5, "scale": 1.0, "draws": 2}
    assert settings.specification(plain.points()[3]) == belated.DelayedPSVI(noise=0.5, scale=1.0, draws=2).to_dict()
    assert list(plain.rounds()) == [plain.points()]
    with pytest.raises(belated.InvalidInputError, match="psvi has no setting 'scael'"):
        Space({"algorithm": "psvi"}, {"scael": [1.0]})


def test_without_optuna_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **given: Any) -> Any:
        if name == "optuna":
            raise ImportError(name)
        return real(name, *rest, **given)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"needs optuna, which is not installed: pip install 'belated\[tune\]'"):
        sampled()


class TestOptuna:
    """With Optuna itself."""

    @pytest.fixture(autouse=True)
    def optuna(self) -> None:
        pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'belated[tune]'")

    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_proposals_are_within_their_ranges_and_always_the_same(self, sampler: str) -> None:
        first, again = play(sampled(sampler)), play(sampled(sampler))
        assert first == again
        points = [point for asked in first for point in asked]
        assert len(points) == 24
        assert len(first) == (ROUNDS if sampler == "tpe" else 1)
        for point in points:
            assert 0.01 <= point["scale"] <= 100
            assert point["draws"] in range(1, 6)
            assert point["ties"] in ("random", "first")
            assert sampled(sampler).algorithm(point) == belated.DelayedPSVI(noise=0.5, **point)

    def test_a_sampler_that_learns_gets_better(self) -> None:
        asked = play(sampled("tpe", count=120))
        means = [sum(map(loss, points)) / len(points) for points in asked]
        assert sum(means[1:]) / (ROUNDS - 1) < 0.8 * means[0]  # the first round is random; one alone may be unlucky

    def test_what_no_sampler_can_search_is_refused(self) -> None:
        with pytest.raises(belated.UnknownNameError, match="sampler must be one of 'random', 'qmc', 'tpe', got 'tpee'"):
            sampled("tpee")
        with pytest.raises(belated.InvalidInputError, match="candidates must be an integer >= 1, got 0"):
            sampled(count=0)
        with pytest.raises(belated.InvalidInputError, match="psvi has no setting 'x'"):
            Sampled(base={"algorithm": "psvi"}, ranges={"x": Range(low=0, high=1)}, sampler="random", most=2)

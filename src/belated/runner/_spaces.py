"""The candidates of one agent: a grid, or what a sampler of Optuna proposes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from belated._util.validate import choice, integer, refuse
from belated.agents import Settings, agent_from_dict
from belated.errors import BelatedError, InvalidInputError
from belated.runner._ranges import Choices, Range, checked_values

Point = dict[str, Any]
"""The values of the settings that are searched."""
SAMPLERS = {"random": "RandomSampler", "qmc": "QMCSampler", "tpe": "TPESampler"}
"""Optuna's samplers by the names that a search file uses."""
ROUNDS = 4
"""In so many rounds a sampler proposes candidates, if it learns from those before."""


class MissingOptunaError(BelatedError):
    """A sampler of Optuna was asked for, but Optuna is not installed."""


class Candidates(Protocol):
    """What a search knows of the candidates of one agent."""

    @property
    def names(self) -> list[str]:
        """The settings that are searched."""

    @property
    def count(self) -> int:
        """How many candidates there are."""

    def rounds(self) -> Generator[list[Point], list[float], None]:
        """Yield the candidates, round by round; it is sent the scores of each round, of which less is better."""

    def specification(self, point: Point) -> dict[str, Any]:
        """Return a candidate as plain values."""

    def algorithm(self, point: Point) -> Any:
        """Return a candidate, to be played."""


@dataclass(frozen=True)
class Space:
    """Candidates of one agent: `base` with every combination of the values in `grid`.

    >>> from belated import DelayedPSVI
    >>> space = Space(DelayedPSVI(), {"scale": [0.1, 1.0], "draws": [1, 4]})
    >>> [(settings.scale, settings.draws) for settings in space.candidates()]
    [(0.1, 1), (0.1, 4), (1.0, 1), (1.0, 4)]
    """

    base: Settings | Mapping[str, Any]
    """Settings, or the plain values of a specification, also of a class of your own."""
    grid: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        """Refuse what is not a grid, and every candidate that its settings refuse."""
        if not isinstance(self.base, Settings) and not (isinstance(self.base, Mapping) and "algorithm" in self.base):
            raise refuse("base", self.base, "settings of an algorithm")
        if not isinstance(self.grid, Mapping) or not self.grid:
            raise refuse("grid", self.grid, "a mapping from settings to their values, at least one")
        if isinstance(self.base, Settings):
            known = [field.name for field in fields(self.base)]
            for name in self.grid:
                if name not in known:
                    listed = ", ".join(known) or "none"
                    raise InvalidInputError(f"{self.base.kind} has no setting {name!r}; its settings are: {listed}")
        grid = {name: checked_values(f"grid[{name!r}]", values) for name, values in self.grid.items()}
        object.__setattr__(self, "grid", grid)
        self.candidates()

    @property
    def names(self) -> list[str]:
        """The settings that are searched."""
        return list(self.grid)

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return len(self.points())

    def points(self) -> list[Point]:
        """Return all combinations; the last setting of the grid changes fastest."""
        return [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]

    def rounds(self) -> Generator[list[Point], list[float], None]:
        """Yield all combinations at once."""
        yield self.points()

    def specification(self, point: Point) -> dict[str, Any]:
        """Return a candidate as plain values."""
        if isinstance(self.base, Settings):
            return replace(self.base, **point).to_dict()
        return {**self.base, **point}

    def algorithm(self, point: Point) -> Any:
        """Return a candidate, to be played."""
        if isinstance(self.base, Settings):
            return replace(self.base, **point)
        return agent_from_dict(self.specification(point))

    def candidates(self) -> list[Any]:
        """Return all candidates, in the order of `points`."""
        return [self.algorithm(point) for point in self.points()]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """Candidates of one agent that a sampler of Optuna proposes, always the same ones for the same scores."""

    base: Mapping[str, Any]
    """The plain values of a specification, without the settings that are searched."""
    ranges: Mapping[str, Choices | Range]
    sampler: str
    count: int

    def __post_init__(self) -> None:
        """Refuse what no sampler can search, and settings of which the first proposals are refused."""
        choice("sampler", self.sampler, SAMPLERS)
        integer("candidates", self.count, at_least=1)
        for point in next(self.rounds()):
            self.algorithm(point)

    @property
    def names(self) -> list[str]:
        """The settings that are searched."""
        return list(self.ranges)

    def rounds(self) -> Generator[list[Point], list[float], None]:
        """Yield what the sampler proposes; one that learns is told the scores of the rounds before."""
        optuna = import_optuna()
        rounds = ROUNDS if self.sampler == "tpe" else 1
        each = -(-self.count // rounds)
        more = {"n_startup_trials": each} if self.sampler == "tpe" else {}
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a sampler is experimental
            study = optuna.create_study(sampler=getattr(optuna.samplers, SAMPLERS[self.sampler])(seed=0, **more))
        asked = {name: _distribution(optuna, one) for name, one in self.ranges.items()}
        left = self.count
        while left:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trials = [study.ask(asked) for _ in range(min(each, left))]
            scores = yield [{name: self._value(name, trial.params) for name in self.ranges} for trial in trials]
            for trial, score in zip(trials, scores or (), strict=False):
                study.tell(trial, score)
            left -= len(trials)

    def _value(self, name: str, params: Mapping[str, Any]) -> Any:
        one = self.ranges[name]
        return one.values[params[name]] if isinstance(one, Choices) else one.nearest(params[name])

    def specification(self, point: Point) -> dict[str, Any]:
        """Return a candidate as plain values."""
        return {**self.base, **point}

    def algorithm(self, point: Point) -> Any:
        """Return a candidate, to be played."""
        return agent_from_dict(self.specification(point))


def _distribution(optuna: Any, one: Choices | Range) -> Any:
    if isinstance(one, Choices):  # by number, since Optuna wants plain values
        return optuna.distributions.CategoricalDistribution(range(len(one.values)))
    kind = optuna.distributions.IntDistribution if one.whole else optuna.distributions.FloatDistribution
    return kind(one.low, one.high, log=one.log)


def import_optuna() -> Any:
    """Return the module, or say how to install it."""
    try:
        import optuna
    except ImportError:
        raise MissingOptunaError(
            "a sampler needs Optuna, which is not installed: pip install 'belated[tune]'; a grid needs nothing"
        ) from None
    return optuna

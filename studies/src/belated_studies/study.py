"""The one notion of a study: what it plays, how much of it, and the report that is made of it.

A study is a package. Each of its modules that has an `ARTEFACT` is one figure or table of the report: its runs, the
section made of them, and the finding that goes to the top, together in one file. `produce` plays and measures what is
missing, and writes the report; it is the same for all studies.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Self, TypeVar

from belated._util.validate import choice
from belated.errors import InvalidInputError
from belated.runner import Experiment, Results, Run
from belated_studies.reports.document import Cell, Claim, Section


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is played; a study adds to it what it needs, such as `episodes`."""

    name: str
    """"quick" or "full"."""
    seeds: int

    @property
    def folder(self) -> str:
        """The folder within `rows` of what is played and measured at this size: seeds may share one, all else not."""
        return self.name

    def resized(self, *, seeds: int | None = None, episodes: int | None = None) -> Self:
        """Return this size with other seeds and episodes; a size with several kinds of either extends this."""
        if episodes is not None and "episodes" not in {one.name for one in fields(self)}:
            raise InvalidInputError(f"this study has no one number of episodes to change, got {episodes}")
        given: dict[str, Any] = {"seeds": seeds, "episodes": episodes}
        return replace(self, **{name: number for name, number in given.items() if number is not None})


S = TypeVar("S", bound=Size)


@dataclass(frozen=True, kw_only=True)
class Measurement(Generic[S]):
    """Something that is measured rather than played, such as times; kept beside the rows."""

    name: str
    """Also the name of its file; unique in the study."""
    kind: Callable[..., Any]
    """What one measured value is: a `NamedTuple` of plain values, which is kept as JSON."""
    measure: Callable[[S], Iterable[Any]]
    """Return the values, each of that kind. It is asked once; afterwards its values are read."""
    lasting: Callable[[Sequence[Any]], bool] = lambda values: True
    """Whether these values are good; if not, it is asked again the next time."""


@dataclass(frozen=True, eq=False)
class Played(Generic[S]):
    """What an artefact is made from."""

    size: S
    experiments: Mapping[str, Experiment]
    results: Mapping[str, Results]
    """Rows, by the name of the experiment."""
    measured: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values, by the name of the measurement."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long each experiment and each measurement took."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Artefact(Generic[S]):
    """One figure or table: its runs, its section and its finding."""

    id: str
    order: int
    """Its place in the report."""
    section: Callable[[Played[S]], Section]
    experiments: Callable[[S], Sequence[Experiment]] = lambda size: ()
    """The experiments it needs; several artefacts may need the same one."""
    measurements: Sequence[Measurement[S]] = ()
    extra: bool = False
    """Whether it is left out unless it is asked for, by name or with `--full`."""
    findings: Callable[[Played[S]], Sequence[str]] = lambda played: ()
    """Sentences for a reader with ten seconds."""
    lines: Callable[[Played[S]], Sequence[Mapping[str, Any]]] = lambda played: ()
    """Its numbers as flat objects, for other programs to read, where `--json` is to list them."""
    cell: Callable[[str, Results, Mapping[str, str]], Cell] | None = None
    """Its number of one agent, delay and environment among the results of an experiment, which is named first; where
    it is not the value upon convergence."""
    line: Callable[[Results, Mapping[str, str]], Mapping[str, Any]] = lambda results, pick: {}
    """What `lines` has of them, as far as it can be told from the results alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Study(Generic[S]):
    """A package of artefacts and what is said around them."""

    name: str
    title: str
    package: str
    """The package whose modules are the artefacts."""
    quick: S
    full: S
    facts: Callable[[Played[S]], Mapping[str, str]]
    """What is needed to judge and to repeat it, beside what every study says."""
    cost: Callable[[Run], float] | None = None
    """CPU seconds of a run, about, so that progress can say how long it will take; None: by its episodes."""
    opening: Callable[[Played[S]], Section | None] = lambda played: None
    """The picture and the table that the report opens with, None if what they need was not played."""
    claims: Callable[[Played[S]], Sequence[Claim]] = lambda played: ()
    """What a paper says of what was played, each sentence with its verdict."""
    remarks: Callable[[Played[S]], Sequence[str]] = lambda played: ()
    """Sentences after the findings."""
    appendix: Callable[[], Sequence[Section]] = tuple
    """Sections after those of the artefacts."""

    def artefacts(self, only: Sequence[str] = ()) -> list[Artefact[S]]:
        """Return the artefacts called `only`, or all, in the order of the report: every module with an `ARTEFACT`."""
        package = importlib.import_module(self.package)
        modules = [importlib.import_module(f"{self.package}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
        found: dict[str, Artefact[S]] = {
            module.ARTEFACT.id: module.ARTEFACT for module in modules if hasattr(module, "ARTEFACT")
        }
        wanted = {choice("the artefact", name, found) for name in only} or set(found)
        return sorted((found[name] for name in wanted), key=lambda artefact: artefact.order)

    def usual(self, full: bool) -> list[str]:
        """Return the ids of the artefacts that are played unless some are named: with `full`, all."""
        return [artefact.id for artefact in self.artefacts() if full or not artefact.extra]

    def experiments(self, size: S, only: Sequence[str] = ()) -> dict[str, Experiment]:
        """Return the experiments that the artefacts called `only` need, or all do, each once, by name."""
        return declared(self.artefacts(only), size)


def declared(artefacts: Iterable[Artefact[S]], size: S) -> dict[str, Experiment]:
    """Return the experiments that `artefacts` need, each once, by name."""
    return {one.name: one for artefact in artefacts for one in artefact.experiments(size)}

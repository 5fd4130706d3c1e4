"""The one notion of a study: what it plays, how much of it, and the report that is made of it.

A study is a package. Each of its modules that has an `ARTEFACT` is one figure or table of the report: the runs it needs, the
section made of them, and the finding that goes to the top, together in one file. `produce` plays what is missing, measures
what is missing, and writes the report; it is the same for all studies.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from belated.reports.document import Section
from belated.runner import Experiment, Results


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is played; a study adds to it what it needs."""

    name: str
    """"quick" or "full"."""
    seeds: int


S = TypeVar("S", bound=Size)


@dataclass(frozen=True, kw_only=True)
class Measurement(Generic[S]):
    """Something that is measured rather than played, such as times; kept beside the rows."""

    name: str
    kind: type[NamedTuple]
    """What one measured value is: a `NamedTuple` of plain values, which is kept as JSON."""
    measure: Callable[[S], Sequence[Any]]
    """Return the values, each of that kind."""


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
    findings: Callable[[Played[S]], Sequence[str]] = lambda played: ()
    """Sentences for a reader with ten seconds."""


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
    remarks: Callable[[Played[S]], Sequence[str]] = lambda played: ()
    """Sentences after the findings."""
    appendix: Callable[[], Sequence[Section]] = tuple
    """Sections after those of the artefacts."""

    def artefacts(self) -> list[Artefact[S]]:
        """Return the artefacts of the study in the order of its report: every module that has an `ARTEFACT`."""
        package = importlib.import_module(self.package)
        modules = [importlib.import_module(f"{self.package}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
        found: list[Artefact[S]] = [module.ARTEFACT for module in modules if hasattr(module, "ARTEFACT")]
        return sorted(found, key=lambda artefact: artefact.order)

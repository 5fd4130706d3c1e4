"""A claim beside what was measured of it, and the artefact in which claims are told: a table and what did not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from belated.types import Floats
from belated_studies.lemmas.worlds import Size
from belated_studies.reports.document import Section, Table
from belated_studies.study import Artefact, Measurement


class Check(NamedTuple):
    """One claim beside what was measured of it."""

    lemma: str
    claim: str
    case: str
    bound: float
    measured: float
    """The worst of all runs."""
    share: float
    """Of the runs, the part in which the claim held."""
    promised: float
    """The part in which it should."""
    applies: bool
    """Whether the settings are those for which it is proved."""

    @property
    def holds(self) -> bool:
        """Whether the claim held as often as promised."""
        return self.share >= self.promised


def check(
    lemma: str,
    claim: str,
    case: str,
    bound: float,
    runs: Sequence[float] | Floats,
    promised: float = 1.0,
    *,
    at_least: bool = False,
    applies: bool = True,
) -> Check:
    """Compare what each of `runs` measured with `bound`, which it should not exceed, or reach if `at_least`."""
    each = np.asarray(runs)
    held, worst = (each >= bound, each.min()) if at_least else (each <= bound, each.max())
    return Check(lemma, claim, case, float(bound), float(worst), float(held.mean()), promised, applies)


def untrue(checks: Iterable[Check]) -> list[str]:
    """Return a sentence for each claim that did not hold as often as promised."""
    return [
        f"{'Promised' if check.applies else 'Not promised'}, and not so: {check.lemma.lower()} with {check.case}."
        for check in checks
        if not check.holds
    ]


def claims_table(name: str, checks: Iterable[Check]) -> Table:
    """Return one row a claim."""
    caption = (
        "Measured is the worst of all runs. A claim holds if it held in at least the promised share of the runs. "
        "Rows marked * have settings for which nothing is proved."
    )
    columns = ["Lemma", "Claim", "Case", "Bound", "Measured", "Share of runs", "Promised", "Holds"]
    rows = []
    for one in checks:
        numbers = [_number(one.bound), _number(one.measured), f"{one.share:.1%}", f"{one.promised:.1%}"]
        lemma = one.lemma if one.applies else f"{one.lemma} *"
        rows.append([lemma, one.claim, one.case, *numbers, "yes" if one.holds else "no"])
    title = "What is claimed, and what was measured"
    return Table(id=f"claims-{name}", title=title, caption=caption, columns=columns, rows=rows, prominent=True)


def claims(name: str, order: int, title: str, measure: Callable[[Size], Iterable[Check]]) -> Artefact[Size]:
    """Return the artefact of the claims that `measure` gives."""
    return Artefact(
        id=name,
        order=order,
        section=lambda played: Section(id=name, title=title, tables=[claims_table(name, played.measured[name])]),
        measurements=(Measurement(name=name, kind=Check, measure=measure),),
        findings=lambda played: untrue(played.measured[name]),
    )


def _number(value: float) -> str:
    return f"{value:,.4g}".replace("-", "−")

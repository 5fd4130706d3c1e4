"""The page of the documentation that shows the claims of the lemmas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from belated_studies.lemmas.claims import Check, claims_table
from belated_studies.reports.tables import table_markdown

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "theory.md"


def shows(found: Sequence[Check]) -> None:
    """Fail unless the page has the row of each claim."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    lines = [line for line in table_markdown(claims_table("", found)).splitlines() if line.endswith(("yes |", "no |"))]
    assert len(lines) == len(found) > 0
    assert [line for line in lines if line not in page] == []

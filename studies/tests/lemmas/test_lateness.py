"""The delays of many runs, as the documentation shows them."""

from __future__ import annotations

import theory_page

from belated_studies.lemmas.lateness import measure
from belated_studies.lemmas.worlds import QUICK


def test_the_page_shows_what_is_measured() -> None:
    found = list(measure(QUICK))
    assert [each.lemma for each in found] == ["Tail of the delays", "Feedback in flight"] * 3
    assert all(each.holds for each in found)
    theory_page.shows(found)

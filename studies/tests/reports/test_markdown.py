from documents import MEASURED, chart, document, opened, series, table

from belated_studies.reports.markdown import document_markdown


def test_a_page_has_tables_and_pictures_beside_it() -> None:
    page = document_markdown(document(table(["DPSVI", MEASURED]), chart(series("a", 1, 2))), pictures="figures")
    assert page.startswith("# t\n")
    assert "## s\n" in page
    assert "](figures/c.png)" in page
    assert "| DPSVI | 11.53 [11.40, 11.66]; paper 11.48 ± 0.81; ✓ reproduced |" in page


def test_the_opening_stands_before_the_summary() -> None:
    page = document_markdown(opened(chart(series("a", 1, 2))), pictures="figures")
    places = [
        page.index(part) for part in ("# t", "](figures/glance.png)", "| DPSVI | 11.53", "- All is well.", "## s")
    ]
    assert places == sorted(places)
    assert "hidden title" not in page

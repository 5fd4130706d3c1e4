import io
from dataclasses import replace

from documents import MEASURED, opened, table
from rich.console import Console

from belated_studies.reports.document import Document, Section
from belated_studies.reports.terminal import print_document


def test_a_document_prints_its_prominent_tables_and_its_summary() -> None:
    tables = [replace(table(["DPSVI", MEASURED]), prominent=True), table(["other", "hidden"], name="other")]
    out = io.StringIO()
    section = Section(id="s", title="s", tables=tables)
    made_of = Document(title="t", summary=["**All** is well."], facts={}, sections=[section])
    print_document(made_of, Console(file=out, width=80))
    assert "11.53 [11.40, 11.66]" in out.getvalue()
    assert "paper 11.48 ± 0.81" in out.getvalue()
    assert "reproduced" in out.getvalue()
    assert "hidden" not in out.getvalue()
    assert out.getvalue().endswith("All is well.\n")


def test_the_opening_is_printed_just_before_the_summary() -> None:
    out = io.StringIO()
    print_document(opened(replace(table(["other", "seen"]), prominent=True)), Console(file=out, width=80))
    places = [out.getvalue().index(part) for part in ("seen", "11.53 [11.40, 11.66]", "All is well.")]
    assert places == sorted(places)

"""A whole report in a folder: the page, and its figures and tables as files."""

from __future__ import annotations

from pathlib import Path

from belated._util.files import write_atomically
from belated_studies.reports.document import Document
from belated_studies.reports.html import render_html
from belated_studies.reports.static import write_figures
from belated_studies.reports.tables import write_tables


def write_report(document: Document, folder: str | Path) -> Path:
    """Write `index.html`, `figures/` and `tables/` into `folder`; return the path of `index.html`.

    The page is written last: where it is new, all the files are.
    """
    folder = Path(folder)
    page = render_html(document)
    write_figures(document, folder / "figures")
    write_tables(document, folder / "tables")
    index = folder / "index.html"
    write_atomically(index, page.encode())
    return index

"""A whole report in a folder: the page, and its figures and tables as files."""

from __future__ import annotations

from pathlib import Path

from belated.reports.document import Document
from belated.reports.html import render_html
from belated.reports.static import write_figures
from belated.reports.tables import write_tables
from belated.storage import write_atomically


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

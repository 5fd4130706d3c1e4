import csv
import io
from pathlib import Path

from documents import MEASURED, document, table

from belated_studies.reports.document import Cell
from belated_studies.reports.tables import table_csv, table_markdown, write_tables


def test_markdown_shows_measured_paper_and_verdict() -> None:
    lines = table_markdown(table(["DPSVI", MEASURED])).splitlines()
    assert lines == [
        "**Returns**",
        "",
        "| agent | return |",
        "| :--- | ---: |",
        "| DPSVI | 11.53 [11.40, 11.66]; paper 11.48 ± 0.81; ✓ reproduced |",
        "",
        "Of the last episodes.",
    ]


def test_markdown_escapes_what_would_act_as_markup() -> None:
    text = table_markdown(table(["a|b <script> x_y `c|<d>` **e**", "[f](g)"]))
    assert r"| a\|b &lt;script> x\_y `c\|<d>` **e** | [f]\(g) |" in text


def test_csv_gives_each_part_of_a_cell_its_own_column_in_full_precision() -> None:
    precise = Cell(value=1 / 3, published=0.3, verdict="not reproduced", digits=1)
    rows = list(
        csv.DictReader(io.StringIO(table_csv(table(["a, `b`", precise], ["c", "skipped"], ["d", Cell(value=None)]))))
    )
    assert rows[0] == {
        "agent": "a, b",
        "return value": repr(1 / 3),
        "return low": "",
        "return high": "",
        "return published": "0.3",
        "return published spread": "",
        "return verdict": "not reproduced",
        "return note": "",
    }
    assert rows[1]["return note"] == "skipped"
    assert set(rows[2].values()) == {"d", ""}


def test_write_tables_writes_each_format_the_same_twice(tmp_path: Path) -> None:
    made = document(table(["DPSVI", MEASURED]), table(["x", "y"], name="settings"))
    write_tables(made, tmp_path)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    write_tables(made, tmp_path)
    assert sorted(first) == [f"{name}.{end}" for name in ("returns", "settings") for end in ("csv", "md", "tex")]
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first

import csv
import io
import math
from pathlib import Path

import pytest

from belated.errors import InvalidInputError, UnknownNameError
from belated.reports.document import Cell, Document, Section, Table
from belated.reports.tables import cell_text, table_csv, table_latex, table_markdown, write_tables

MEASURED = Cell(value=11.53, low=11.4, high=11.66, published=11.48, published_spread=0.81, verdict="reproduced")


def table(*rows: list[str | Cell], name: str = "returns") -> Table:
    return Table(id=name, title="Returns", caption="Of the last episodes.", columns=["agent", "return"], rows=rows)


def document(*tables: Table) -> Document:
    return Document(title="t", summary=[], facts={}, sections=[Section(id="s", title="s", tables=tables)])


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (MEASURED, "11.53 [11.40, 11.66]"),
        (Cell(value=1234.5, digits=0), "1,234"),
        (Cell(value=-0.25, low=-0.5, high=0.0, digits=1), "−0.2 [−0.5, 0.0]"),
        (Cell(value=-0.001), "0.00"),
        (Cell(value=1.0, low=0.5), "1.00"),
        (Cell(value=1.0, note="one seed"), "1.00 (one seed)"),
        (Cell(value=None, note="not run"), "not run"),
        (Cell(value=None, low=1.0, high=2.0), "–"),
        (Cell(value=math.nan), "–"),
        (Cell(value=math.inf), "∞"),
    ],
)
def test_cell_text(cell: Cell, text: str) -> None:
    assert cell_text(cell) == text


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


def test_latex_is_a_booktabs_float_with_the_paper_under_the_measured() -> None:
    text = table_latex(table(["DPSVI", MEASURED], ["random", Cell(value=-1.0)]))
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"\begin{tabular}{@{}lr@{}}" in text
    assert r"DPSVI & 11.53 {\footnotesize [11.40, 11.66]} $\checkmark$ \\" in text
    assert r"\quad{\footnotesize paper} & {\footnotesize 11.48 $\pm$ 0.81} \\" in text
    assert r"random & $-$1.00 \\" in text
    assert r"\label{tab:returns}" in text
    assert "$\\checkmark$ reproduced." in text


def test_latex_escapes_every_special_sign() -> None:
    text = table_latex(table([r"[50 % & $1 #_{}~^\ λ√²", "`a_b` **c**"]))
    assert (
        r"{}[50 \% \& \$1 \#\_\{\}\textasciitilde{}\textasciicircum{}\textbackslash{} $\lambda$$\surd$$^2$"
        r" & \texttt{a\_b} \textbf{c} \\"
    ) in text


def test_write_tables_writes_each_format_the_same_twice(tmp_path: Path) -> None:
    made = document(table(["DPSVI", MEASURED]), table(["x", "y"], name="settings"))
    write_tables(made, tmp_path)
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    write_tables(made, tmp_path)
    assert sorted(first) == [f"{name}.{end}" for name in ("returns", "settings") for end in ("csv", "md", "tex")]
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first


def test_a_malformed_document_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="'returns' 2 times"):
        write_tables(document(table(), table()), tmp_path)
    with pytest.raises(InvalidInputError, match="letters, digits"):
        write_tables(document(table(name="../escape")), tmp_path)
    with pytest.raises(InvalidInputError, match="2 cells, got 1"):
        write_tables(document(table(["short"])), tmp_path)
    with pytest.raises(UnknownNameError, match="did you mean 'reproduced'"):
        write_tables(document(table(["a", Cell(value=1.0, verdict="reproducd")])), tmp_path)
    assert list(tmp_path.iterdir()) == []

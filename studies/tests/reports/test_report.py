from pathlib import Path

from documents import MEASURED, chart, document, series, table

from belated_studies.reports.report import write_report


def test_a_report_is_a_page_with_its_figures_and_tables_the_same_each_time(tmp_path: Path) -> None:
    made = document(table(["DPSVI", MEASURED]), chart(series("a", 1, 2), name="curves"))
    index = write_report(made, tmp_path / "one")
    assert index == tmp_path / "one" / "index.html"
    write_report(made, tmp_path / "two")

    def contents(folder: Path) -> dict[str, bytes]:
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    first = contents(tmp_path / "one")
    assert sorted(first) == [
        *("figures/curves.pdf", "figures/curves.png", "index.html"),
        *("tables/returns.csv", "tables/returns.md", "tables/returns.tex"),
    ]
    assert contents(tmp_path / "two") == first

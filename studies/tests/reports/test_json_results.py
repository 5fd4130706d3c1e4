import io
import json
from dataclasses import replace
from typing import Any

import pytest
from documents import MEASURED, chart, document, series, table
from rich.console import Console

import belated
from belated_studies.reports.document import Block, Cell, Claim, Finding, Section
from belated_studies.reports.html import render_html
from belated_studies.reports.json_results import claim_record, section_records
from belated_studies.reports.markdown import document_markdown
from belated_studies.reports.terminal import print_document

TUNED, LITERAL = Block("tuned"), Block("literal")


def test_every_measured_cell_is_a_record_with_the_block_of_its_row_or_its_table() -> None:
    own = replace(table(["a", MEASURED], [LITERAL, Cell(value=1.0)], ["b", Cell(value=None)]), block=TUNED)
    first, second = section_records(Section(id="s", title="", tables=[own]))
    assert first == {
        "where": "returns",
        "row": "a",
        "column": "return",
        "block": "tuned",
        "value": 11.53,
        "low": 11.4,
        "high": 11.66,
        "published": 11.48,
        "published_spread": 0.81,
        "verdict": "reproduced",
    }
    assert (second["row"], second["block"], second["low"]) == ("", "literal", None)
    assert json.loads(json.dumps([first, second], allow_nan=False))[1]["block"] == "literal"


def test_every_end_of_a_curve_is_a_record_and_bars_are_none() -> None:
    curves = replace(chart(series("a", 1, 2, spread=0.5), series("b", 3)), block=TUNED)
    bars = chart(series("c", 1), bars=True, name="bars")
    first, second = section_records(Section(id="s", title="", charts=[curves, bars]))
    assert (first["where"], first["row"], first["column"]) == ("c", "a", "end of curve, episode 2")
    assert (first["value"], first["low"], first["high"], first["block"]) == (2.0, 1.5, 2.5, "tuned")
    assert (second["value"], second["low"]) == (3.0, None)


CLAIM = Claim(
    claim="late is **late** & <slow>",
    where="s",
    printed=Finding("does not hold", "1 of 2"),
    tuned=Finding("holds", "2 of 2"),
    because="`c` is too large",
)


def test_a_claim_is_told_alike_everywhere() -> None:
    told = replace(document(table()), claims=[CLAIM])
    record = claim_record(CLAIM)
    assert (record["claim"], record["artefact"]) == (CLAIM.claim, "s")
    assert (record["verdict"], record["evidence"]) == ("does not hold", "1 of 2")
    assert (record["tuned"], record["because"]) == ({"verdict": "holds", "evidence": "2 of 2"}, "`c` is too large")
    assert CLAIM.sentence == (
        "“late is **late** & <slow>” (S): **does not hold** with the printed settings (1 of 2); **holds** tuned "
        "(2 of 2), because `c` is too large."
    )
    assert f"1. {CLAIM.sentence}" in document_markdown(told, pictures="p")
    page = render_html(told)
    assert 'late is <strong>late</strong> &amp; &lt;slow&gt;” <a href="#s">S</a>' in page
    assert page.index('class="claims"') < page.index('<section class="part"')
    assert page.index("✗</span> does not hold") < page.index("✓</span> holds")
    console = Console(record=True, width=200, file=io.StringIO())
    print_document(told, console)
    assert "• “late is late & <slow>” (S): does not hold with the printed settings (1 of 2)" in console.export_text()


@pytest.mark.parametrize("wrong", [{"where": "t"}, {"printed": Finding("reproduced", "")}])
def test_claims_of_no_section_and_unknown_verdicts_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(belated.BelatedError, match="claim must be one of"):
        replace(document(table()), claims=[replace(CLAIM, **wrong)])

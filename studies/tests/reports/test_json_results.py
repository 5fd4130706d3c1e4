import json
from dataclasses import replace

from documents import MEASURED, chart, series, table

from belated_studies.reports.document import Block, Cell, Section
from belated_studies.reports.json_results import section_records

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

"""Some cells of a study, with the study's own seeds and with others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call, refused
from small import SMALL

import belated
from belated.evaluation import upon_convergence
from belated_studies.paper import STUDY, table_2
from belated_studies.paper.published import RETURN_BY_DELAY
from belated_studies.paper.setting import DELAYS, LITERAL
from belated_studies.reports.document import Cell
from belated_studies.subset import play_cells, with_cells


def cells(folder: Path, **changes: Any) -> tuple[Any, list[dict[str, Any]]]:
    pick = {name: changes.pop(name, None) for name in ("agent", "delay", "environment")}
    given: dict[str, Any] = {"out": folder, "only": ["table-2"], "episodes": 12, "progress": False, **changes}
    return play_cells(STUDY, SMALL, pick, **given)


def test_one_cell_of_a_table_with_other_seeds(tmp_path: Path) -> None:
    document, lines = cells(tmp_path, agent="psvi", delay="poisson", seeds=range(100, 102))
    assert [(line["runs"], line["agent"], line["delay"], line["seeds"]) for line in lines] == [
        ("table-2-literal", "psvi", "poisson", [100, 101]),
        ("table-2-tuned", "psvi", "poisson", [100, 101]),
    ]
    literal = table_2.of_block(SMALL, LITERAL)
    assert isinstance(literal.environments, dict)
    (world,) = literal.environments.values()
    rows = [
        belated.simulate(world, literal.agents["psvi"], DELAYS["poisson"], episodes=12, seed=seed)
        for seed in (100, 101)
    ]
    expected = upon_convergence(np.stack([each["value"].to_numpy() for each in rows])).estimate
    assert lines[0]["value"] == pytest.approx(expected.value, rel=1e-12)
    assert lines[0]["low"] == pytest.approx(expected.low, rel=1e-12)
    assert lines[0]["regret"] == pytest.approx(np.mean([each["regret"][-1] for each in rows]), rel=1e-12)
    assert lines[0]["published"] == RETURN_BY_DELAY["psvi"]["poisson"].value
    table = document.sections[0].tables[0]
    assert table.title.startswith("Cells of table-2, 12 episodes, synthetic-")
    assert table.title.endswith("Delayed-PSVI, poisson, seeds 100 to 101")
    assert list(table.columns) == ["Runs", "Measured", "Regret"]
    measured = table.rows[0][1]
    assert isinstance(measured, Cell)
    assert measured.published == lines[0]["published"]
    assert lines[0]["verdict"] == "cannot be judged"


def test_what_was_played_is_kept_beside_the_study_and_not_played_again(tmp_path: Path) -> None:
    _, first = cells(tmp_path, agent="ucbvi", delay="poisson", seeds=range(100, 102))
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows" / "12-episodes").rglob("*.parquet")}
    assert sorted({path.stem for path in files}) == ["seed-100", "seed-101"]
    _, again = cells(tmp_path, agent="ucbvi", delay="poisson", seeds=range(100, 102))
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in files} == files
    cells(tmp_path, agent="ucbvi", delay="poisson", seeds=range(100, 102), resume=False)
    assert all(path.stat().st_mtime_ns != stamp for path, stamp in files.items())


def test_every_kind_of_artefact_has_sensible_cells(tmp_path: Path) -> None:
    assert {"table-1", "table-2", "table-3", "table-4", "figure-1", "figure-3"} <= set(with_cells(STUDY, SMALL))
    _, lines = cells(tmp_path, only=["table-3", "figure-3"], agent="ucbvi", environment=None, seeds=1)
    sizes = {line["environment"] for line in lines if line["artefact"] == "table-3"}
    assert sizes == {"size-20", "size-40", "size-100", "size-200"}
    assert all(line["published"] for line in lines if line["artefact"] == "table-3")
    assert all(line["published"] is None for line in lines if line["artefact"] == "figure-3")
    _, one = cells(tmp_path, only=["table-4"], agent="ucbvi", environment="size-40", seeds=1)
    assert [line["environment"] for line in one] == ["size-40", "size-40"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"only": []}, "cells are those of an artefact, named with --only: figure-1, .*table-2"),
        ({"only": ["figure-2"]}, "figure-2 plays no runs, so it has no cells; those that have are figure-1"),
        ({"agent": "psvj"}, r"the agent of table-2 must be one of 'psvi', .* did you mean 'psvi'\?"),
        (
            {"only": ["details"], "agent": "psvi-first", "delay": "lomax"},
            "details has no cell with agent psvi-first, delay lomax together",
        ),
    ],
)
def test_what_is_no_cell_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(belated.BelatedError, match=message):
        cells(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


def test_the_command_plays_a_cell(tmp_path: Path) -> None:
    options = ("--agent", "ucbvi", "--delay", "poisson", "--seeds", "100:102", "--episodes", 12)
    result = call("paper", "--only", "table-2", *options, "--out", tmp_path, "--json", tmp_path / "cells.json")
    assert result.exit_code == 0, result.output
    assert "Cells of table-2, 12 episodes" in result.output
    assert "table-2-tuned" in result.output
    assert [line["seeds"] for line in json.loads((tmp_path / "cells.json").read_text())] == [[100, 101]] * 2
    assert not (tmp_path / "index.html").exists()
    assert "--seeds must be a number of seeds, or a range" in refused(call("paper", "--seeds", "x", "--out", tmp_path))

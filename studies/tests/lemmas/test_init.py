"""The study as a whole: its parts, and what it says of all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import theory_page
from commands import call

from belated_studies.lemmas import STUDY
from belated_studies.lemmas.claims import Check
from belated_studies.lemmas.worlds import QUICK
from belated_studies.study import Played

PROVED = Check("Optimism", "Q − Q* ≥ 0", "M = 9", 0.0, 1.5, 1.0, 0.95, applies=True)


def test_the_parts_stand_in_order() -> None:
    parts = ["optimism", "widths", "covariance", "potential", "lateness", "regret"]
    assert [artefact.id for artefact in STUDY.artefacts()] == parts


def test_claims_of_all_parts_are_counted_if_they_are_proved() -> None:
    broken = PROVED._replace(share=0.5)
    measured: dict[str, list[Any]] = {
        "optimism": [PROVED, PROVED._replace(applies=False)],
        "lateness": [broken, PROVED],
        "widths": [(2, 1.0)],
    }
    (told,) = STUDY.remarks(Played(QUICK, {}, {}, measured))
    assert told == "Of 3 claims with the settings they are proved for, 2 hold as often as promised."


def test_the_command_prints_writes_and_resumes(tmp_path: Path) -> None:
    first = call("lemmas", "--out", tmp_path, "--only", "lateness", "--json", tmp_path / "found.json")
    assert first.exit_code == 0, first.output
    assert "Of 6 claims with the settings they are proved for, 6 hold as often as promised." in first.output
    assert "Tail of" in first.output
    assert (tmp_path / "tables" / "claims-lateness.md").is_file()
    assert (tmp_path / "found.json").is_file()
    (kept,) = (tmp_path / "rows" / QUICK.folder).rglob("lateness.json")
    before = kept.stat().st_mtime_ns
    again = call("lemmas", "--out", tmp_path, "--only", "lateness")
    assert again.exit_code == 0
    assert kept.stat().st_mtime_ns == before
    assert "Tail of" in again.output


def test_every_practical_claim_of_the_page_is_marked() -> None:
    page = theory_page.PAGE.read_text(encoding="utf-8")
    refuted = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.endswith("| no |")]
    assert refuted == ["Anti-concentration", "Optimism \\*", "Optimism \\*"]

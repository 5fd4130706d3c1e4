"""The page on the reproduction says of every item of the paper where it is, or why it is not here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from belated import theory
from belated_studies import lemmas, paper, systems

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "explanation" / "reproduction.md"
LEMMAS = {"A": 1, "B": 12, "C": 10, "D": 15}
ITEMS = [
    *("Definition 1", "Definition 2", "Assumption 1", "Remark 1", "Remark 2"),
    *(f"Algorithm {i}" for i in range(1, 5)),
    *("Theorem 1", "Theorem 2", "Corollary 1", "Corollary 2", "Arbitrary delays"),
    *(f"Lemma {section}.{i}" for section, count in LEMMAS.items() for i in range(1, count + 1)),
    *(f"Table {i}" for i in range(1, 5)),
    *(f"Figure {i}" for i in range(1, 4)),
    "Cost of computation",
    *(f"Direction: {one}" for one in ("general function approximation", "dependence on H", "adversarial delays")),
]


def rows() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8").partition("## Where everything of the paper is")[2]
    entries = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {item: where for item, _, where in entries[1:]}


def test_every_item_of_the_paper_is_listed() -> None:
    assert list(rows()) == ITEMS
    assert all(rows().values())


@pytest.mark.parametrize("item", ITEMS)
def test_what_an_item_names_exists(item: str) -> None:
    where = rows()[item]
    for name in re.findall(r"`theory\.(\w+)`", where):
        assert name in theory.__all__
    for command, part in re.findall(r"`belated (\w+) --only ([\w-]+)`", where):
        study = {"paper": paper, "lemmas": lemmas, "systems": systems}[command].STUDY
        assert part in [artefact.id for artefact in study.artefacts()]
    for link in re.findall(r"\]\(([^)#]*)(?:#[\w-]+)?\)", where):
        assert (PAGE.parent / link).is_file()
    for step in re.findall(r"Lemmas? ([A-D]\.\d+)", where):
        assert f"Lemma {step}" in ITEMS

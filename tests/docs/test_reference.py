"""The reference pages list what there is."""

from __future__ import annotations

import dataclasses
import doctest
import re
from pathlib import Path

from scripts import load

import belated
from belated.decisions import MemoryStore, Model
from belated.runner._rows import schema
from belated.service._config import load_models

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_generated_pages_are_what_the_code_says() -> None:
    for path, text in load("tools/reference.py").pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: make generate"


def test_every_public_name_is_listed_once() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[`([^`]+)`\]", page, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(belated.__all__) <= set(listed)


def test_what_is_public_is_in_the_reference_and_all_else_has_an_underscore() -> None:
    reference = load("tools/reference.py")
    assert {module for _, modules in reference.API.values() for module in modules} == reference.public_modules()


def test_every_setting_has_a_text() -> None:
    reference = load("tools/reference.py")
    for algorithm in belated.AGENTS.values():
        assert set(reference.field_texts(algorithm)) >= {each.name for each in dataclasses.fields(algorithm)}


def test_the_example_of_a_models_settings_can_be_used(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "model-settings.md").read_text(encoding="utf-8")
    (tmp_path / "models.toml").write_text(page.partition("```toml\n")[2].partition("```")[0], encoding="utf-8")
    found = load_models(tmp_path / "models.toml")
    assert {name: settings.encoding.weights for name, settings in found.items()} == {
        "ads": "per action", "offers": "shared"
    }  # fmt: skip
    model = Model("offers", found["offers"], MemoryStore())
    assert model.decide({"hour": 17, "country": "DE"}).action in ("basic", "family")


def test_the_symbol_table_names_settings_that_exist() -> None:
    page = (DOCS / "explanation" / "the-algorithms.md").read_text(encoding="utf-8")
    section = page.partition("## Symbols and settings")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| \S+ \| `(\w+)` \|", section, flags=re.MULTILINE))
    known = {each.name for algorithm in belated.AGENTS.values() for each in dataclasses.fields(algorithm)}
    expected = "draws scale noise ridge steps step_size step_ratio temperature bonus bonus_ratio"
    assert listed == set(expected.split())
    assert listed <= known


def test_the_columns_of_rows_are_listed_with_their_types() -> None:
    page = (DOCS / "reference" / "files.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (Int64|Float64) \|", page, flags=re.MULTILINE)
    assert listed == [(name, str(dtype)) for name, dtype in schema().items()]


def test_the_example_of_the_front_page_runs() -> None:
    failed, tried = doctest.testfile(str(DOCS / "index.md"), module_relative=False)
    assert tried > 0
    assert failed == 0

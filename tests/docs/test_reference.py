"""The reference pages list what there is."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import re
from pathlib import Path

import pytest

import belated
from belated import delays, environments, evaluation
from belated.runner.rows import schema

DOCS = Path(__file__).parents[2] / "docs"


def first_column(page: str) -> list[str]:
    """Return the code of the first column of all tables of `page`."""
    return re.findall(r"^\| `([^`]+)` \|", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_public_name_is_listed_once() -> None:
    listed = [name for name in first_column("reference/api.md") if name in belated.__all__]
    assert sorted(listed) == sorted(belated.__all__)


def test_every_listed_name_exists() -> None:
    for name in first_column("reference/api.md"):
        module, _, last = name.rpartition(".")
        places = [importlib.import_module(module)] if module else [belated, evaluation]
        assert any(hasattr(place, last) for place in places), name


def test_the_names_of_the_subpackages_are_listed() -> None:
    listed = {name.rpartition(".")[2] for name in first_column("reference/api.md")}
    for module in (delays, environments, evaluation):
        types_of_results = {"SubExponential", "Linearity", "World", "LAWS", "ENVIRONMENTS"}
        assert set(module.__all__) - types_of_results <= listed


@pytest.mark.parametrize("kind", belated.ALGORITHMS)
def test_every_setting_is_listed_with_its_default(kind: str) -> None:
    algorithm = belated.ALGORITHMS[kind]
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    section = page.partition(f"## {algorithm.__name__} (`{kind}`)\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|[^|]*\| `?([^|`]+)`? \|", section, flags=re.MULTILINE)
    fields = dataclasses.fields(algorithm)
    required = dataclasses.MISSING
    assert listed == [(each.name, "required" if each.default is required else repr(each.default)) for each in fields]


def test_the_symbol_table_names_settings_that_exist() -> None:
    page = (DOCS / "explanation" / "the-algorithms.md").read_text(encoding="utf-8")
    section = page.partition("## Symbols and settings")[2].partition("\n## ")[0]
    listed = set(re.findall(r"^\| \S+ \| `(\w+)` \|", section, flags=re.MULTILINE))
    known = {each.name for algorithm in belated.ALGORITHMS.values() for each in dataclasses.fields(algorithm)}
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


def test_every_page_is_in_the_navigation() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    pages = {page for page in pages if not page.startswith("examples")}
    assert set(re.findall(r"\S+\.md", navigation)) >= pages

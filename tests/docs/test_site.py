"""The site has every page, every public name and formulas that can be typeset, and asks nobody for anything."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import belated

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
CODE = re.compile(r"^(```+).*?^\1$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"(\$\$)(.+?)\$\$|(\$)(?!\s)([^$\n]+?)(?<!\s)\$", re.DOTALL)


def in_reference() -> dict[int, str]:
    """Return the paths of all that the pages of the API show, by the identity of what they lead to."""
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference" / "api").glob("*.md"))
    found: dict[int, str] = {}
    for path in re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE):
        module, _, name = path.rpartition(".")
        found[id(getattr(importlib.import_module(module), name))] = path
    assert len(found) == text.count("\n::: "), "a name is shown twice"
    return found


def exporting() -> list[str]:
    """Return the packages and modules of `belated` that list what they export, except those of the programs."""
    found = ["belated"]
    for path in sorted((ROOT / "src" / "belated").rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        lists = re.search(r"^__all__ = \[|attach_stub", text, flags=re.MULTILINE)
        if lists and not any(part.startswith("_") for part in parts[1:] if part != "__init__"):
            found.append(".".join(parts).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("package", exporting())
def test_every_exported_name_is_in_the_reference(package: str) -> None:
    known, module = in_reference(), importlib.import_module(package)
    assert [name for name in module.__all__ if id(getattr(module, name)) not in known] == []


def test_every_class_of_a_registry_is_in_the_reference() -> None:
    registries = belated.agents.AGENTS, belated.delays.DELAYS, belated.environments.ENVIRONMENTS
    known = in_reference()
    assert [each for registry in registries for each in registry.values() if id(each) not in known] == []


def named(page: Path) -> set[str]:
    """Return what a page imports from belated in examples that are shown, and what it names as `belated.x.y`."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = re.findall(r"^\s*(?:>>> )?(from belated[\w.]* import [\w, ]+)$", text, flags=re.MULTILINE)
    nodes = [ast.parse(line).body[0] for line in lines]
    found = {f"{node.module}.{each.name}" for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names}
    return found | set(re.findall(r"`(belated(?:\.\w+)+)[`(]", text))


def found(path: str) -> Any:
    """Return what a dotted path leads to."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(path)


def test_every_name_that_the_pages_mention_is_in_the_reference() -> None:
    known = in_reference()
    mentioned = {name: found(name) for page in (ROOT / "README.md", *PAGES) for name in named(page)}
    assert len(mentioned) > 80
    derived = {name for page in PAGES if page.parent.name == "math" for name in named(page)}
    kernels = {name for name in derived if name.startswith("belated._kernels.")}  # compared with their derivation
    absent = {n for n, thing in mentioned.items() if id(thing) not in known and not inspect.ismodule(thing)}
    assert absent - kernels == set()


def test_the_navigation_has_every_page_and_no_other() -> None:
    listed = re.findall(r"\S+\.md", CONFIGURATION.partition("\nnav:")[2])
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_formulas_can_be_typeset(page: Path) -> None:
    math_core = pytest.importorskip("math_core", reason="needs math-core, which the extra `dev` brings")
    convert = math_core.LatexToMathML(fancy_error=False).convert_with_local_state
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for block, displayed, inline, shown in FORMULA.findall(text):
        assert convert(displayed or shown, displaystyle=bool(block)).startswith("<math"), (block, inline)
    assert "$" not in FORMULA.sub("", text), "a dollar that belongs to no formula"


def test_nothing_is_asked_of_other_machines() -> None:
    addresses = re.findall(r"https?://[^\s\"')]+", CONFIGURATION + (DOCS / "assets" / "site.css").read_text())
    assert addresses == []
    assert "font: false" in CONFIGURATION
    assert "repo_url" not in CONFIGURATION, "the theme would ask its host how many stars it has"


def test_the_figures_of_the_choice_of_agents_are_those_of_the_pages_that_it_links_to() -> None:
    folder, checked = DOCS / "explanation", 0
    for line in (folder / "which-agent.md").read_text(encoding="utf-8").splitlines():
        cell = line.split(" | ")[-1]
        source = re.search(r"\(\[(?:systems|gallery)\]\(([\w./-]+\.md)", cell)
        if not line.startswith("| ") or source is None:
            continue
        text = (folder / source[1]).read_text(encoding="utf-8")
        for figure in re.findall(r"\b\d{1,3}(?:,\d{3})+|\b\d{2,}", cell):
            assert re.search(rf"(?<![\d,.]){figure}(?![,.]?\d)", text), f"{figure} is not on {source[1]}: {line}"
            checked += 1
    assert checked > 30

"""The house stays straight: short files, short functions, tests beside sources, no ignored types in algorithms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [path for folder in ("src", "benchmarks", "tools") for path in sorted((ROOT / folder).rglob("*.py"))]
LONGEST_FILE, LONGEST_FUNCTION = 400, 60


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= LONGEST_FILE
    long = [node.name for node in functions(path) if (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION]
    assert long == []


def test_no_type_is_ignored_in_the_algorithms() -> None:
    found = [
        path for path in (ROOT / "src" / "belated" / "algorithms").glob("*.py") if "type: ignore" in path.read_text()
    ]
    assert found == []


WITHOUT_A_TEST_OF_ITS_NAME = {
    "sampled.py": "protocols and plain tuples, without behaviour of their own",
}
"""Modules of `src/belated`, each with the reason why `tests` has no file of its name in the same place."""


def test_every_source_has_a_test_of_its_name() -> None:
    """`tests/a/test_b.py` is there for each `src/belated/a/b.py`, so that one knows where to look."""
    package = ROOT / "src" / "belated"
    modules = [path.relative_to(package) for path in sorted(package.rglob("*.py")) if not path.name.startswith("_")]
    bare = [str(path) for path in modules if not (ROOT / "tests" / path.parent / f"test_{path.name}").exists()]
    assert bare == sorted(WITHOUT_A_TEST_OF_ITS_NAME)

"""The house stays straight: short files, short functions, tests beside sources, no ignored types in algorithms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "benchmarks", "attacks", "tools")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
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


TESTED_ELSEWHERE = {
    "sampled.py": "protocols and plain tuples, without behaviour of their own",
    "algorithms/auto_*.py": "the agents of one rule, compared as a whole with its transcription in test_auto_psvi.py",
    "decisions/*.py": "the parts of the learner, through which they are tested in test_learner.py and test_model.py",
    "decisions/store/*.py": "stores of one contract, which test_store.py holds them all to",
    "service/service.py": "puts the parts together; tested with all of them in test_app.py",
    "service/store.py": "a choice of two, which every test of the commands makes",
}
"""Modules of `src/belated`, by pattern, each with the reason why no test of its name stands in the same place."""


def test_every_source_has_a_test_of_its_name() -> None:
    """`tests/a/test_b.py` is there for each `src/belated/a/b.py`, so that one knows where to look."""
    package = ROOT / "src" / "belated"
    modules = [path.relative_to(package) for path in sorted(package.rglob("*.py")) if not path.name.startswith("_")]
    bare = [path for path in modules if not (ROOT / "tests" / path.parent / f"test_{path.name}").exists()]
    matches = {pattern: [path for path in bare if fits(path, pattern)] for pattern in TESTED_ELSEWHERE}
    excused = {path for paths in matches.values() for path in paths}
    assert [str(path) for path in bare if path not in excused] == [], "tests are missing"
    assert [pattern for pattern, paths in matches.items() if not paths] == [], "no reason is needed any more"


def fits(path: Path, pattern: str) -> bool:
    return len(path.parts) == pattern.count("/") + 1 and path.match(pattern)

"""Every source has a test where one looks for it, imports go in no circle, and no type is ignored in the agents."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]

#: The package of each distribution, and its tests.
PACKAGES = {
    ROOT / "src" / "belated": ROOT / "tests",
    ROOT / "studies" / "src" / "belated_studies": ROOT / "studies" / "tests",
}

TESTED_ELSEWHERE = {
    "_kernels/by_age.py": "one rule for two users, each compared with its oracle, in test_by_age.py of both",
    "agents/_row_regression.py": "what row agents are made of, compared with dense solutions in test_row_agent.py",
    "agents/_silent.py": "what OTF and LearnByAge share, and are tested with",
    "agents/_auto/*.py": "the parts of one rule, compared as a whole with its transcription in test_auto_psvi.py",
    "decisions/_*.py": "the parts of the learner, through which they are tested in test_learner.py and test_model.py",
    "decisions/_store/*.py": "stores of one contract, which test_store.py holds them all to",
    "compiled.py": "names of other modules for agents of one's own; the skeleton of the how-to is built from them",
    "runner/_backends.py": "tested by kind in test_threads.py, test_processes.py and test_ray.py",
}
"""Modules, by pattern, each with the reason why no test of its name stands in the same place."""


def path_of_test(module: Path) -> Path:
    """Return where the test of a module is: that of `agents/_auto/x.py` is `agents/auto/test_x.py`."""
    *folders, name = (part.lstrip("_") for part in module.parts)
    return Path(*folders, f"test_{name}")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_source_has_a_test_of_its_name(package: Path) -> None:
    modules = [path.relative_to(package) for path in sorted(package.rglob("*.py")) if not path.name.startswith("__")]
    bare = [path for path in modules if not (PACKAGES[package] / path_of_test(path)).exists()]
    assert [str(path) for path in bare if not any(fits(path, pattern) for pattern in TESTED_ELSEWHERE)] == []


def test_no_exception_is_made_without_need() -> None:
    library = ROOT / "src" / "belated"
    modules = [path.relative_to(library) for path in library.rglob("*.py")]
    bare = [path for path in modules if not (ROOT / "tests" / path_of_test(path)).exists()]
    assert [pattern for pattern in TESTED_ELSEWHERE if not any(fits(path, pattern) for path in bare)] == []


def fits(path: Path, pattern: str) -> bool:
    return len(path.parts) == pattern.count("/") + 1 and path.match(pattern)


def test_no_type_is_ignored_in_the_agents() -> None:
    agents = ROOT / "src" / "belated" / "agents"
    found = [path for path in agents.rglob("*.py") if "type: ignore" in path.read_text(encoding="utf-8")]
    assert found == []


def test_imports_of_the_library_go_in_no_circle() -> None:
    """Those within functions included."""
    graph = grimp.build_graph("belated", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the circle

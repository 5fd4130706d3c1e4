"""What the packages export, and what they load before it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import belated

ROOT = Path(__file__).parents[1]


def run(program: str) -> str:
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def test_the_stubs_are_what_the_tool_writes() -> None:
    found = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "exports.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("package", ["belated", "belated.agents", "belated.delays", "belated.runner"])
def test_every_exported_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name).__doc__, name
    assert set(module.__all__) <= set(dir(module))


def test_everything_registered_is_exported() -> None:
    classes = {
        *belated.agents.AGENTS.values(),
        *belated.delays.DELAYS.values(),
        *belated.environments.ENVIRONMENTS.values(),
    }
    assert {getattr(belated, each.__name__) for each in classes} == classes


def test_a_star_brings_the_names_and_no_modules() -> None:
    names = run("from belated import *; print(*sorted(dir()))").split()
    assert set(belated.__all__) <= set(names)
    assert "types" not in names
    assert "DelayedPSVI" in names


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="DelayedNothing"):
        getattr(belated, "DelayedNothing")  # noqa: B009


HEAVY = (
    "cloudpickle",
    "fsspec",
    "gymnasium",
    "joblib",
    "matplotlib",
    "numba",
    "plotly",
    "polars",
    "ray",
    "rich",
    "sklearn",
)


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        ("import belated", set()),
        ("import belated; belated.__version__", set()),
        ("import belated.decisions", {"numba"}),
        ("from belated import DelayedPSVI, RiverSwim", {"numba"}),
        ("from belated import Poisson", set()),
    ],
)
def test_an_import_loads_no_more_than_it_needs(program: str, loaded: set[str]) -> None:
    found = run(f"import sys; {program}; print(*[name for name in {HEAVY} if name in sys.modules])")
    assert set(found.split()) <= loaded

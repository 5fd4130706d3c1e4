"""What would be published: one version, metadata that agree with each other, and a package that works installed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import belated

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
STUDIES = tomllib.loads((ROOT / "studies" / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place_and_is_the_newest_release() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    source = (ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE) == [belated.__version__]
    releases = re.findall(
        r"^## \[(\d\S*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert releases[0][0] == belated.__version__
    assert f"\nversion: {releases[0][0]}\n" in citation
    assert f'\ndate-released: "{releases[0][1]}"\n' in citation


def test_the_studies_have_the_same_version_python_and_licence() -> None:
    assert STUDIES["project"]["version"] == belated.__version__
    assert any(f"=={belated.__version__}" in need for need in STUDIES["project"]["dependencies"])
    assert STUDIES["project"]["requires-python"] == PROJECT["project"]["requires-python"]
    assert (ROOT / "studies" / "LICENSE").read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_pythons_that_are_named_begin_with_the_least_and_leave_none_out() -> None:
    named = [
        re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", one) for one in PROJECT["project"]["classifiers"]
    ]
    minors = [int(match[1]) for match in named if match]
    least = int(PROJECT["project"]["requires-python"].removeprefix(">=3."))
    assert minors == list(range(least, 15))


def test_every_link_is_an_address() -> None:
    links = PROJECT["project"]["urls"]
    assert links["Paper"] == "https://arxiv.org/abs/2310.18919"
    assert all(re.fullmatch(r"https://[\w.]+/\S+", link) for link in links.values())


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("build", "twine", "mypy"))), reason="build, twine and mypy are not installed"
)
def test_what_is_built_installs_and_works() -> None:
    program = [sys.executable, str(ROOT / "tools" / "distribution.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"belated_studies-{belated.__version__}.tar.gz are ready" in done.stdout

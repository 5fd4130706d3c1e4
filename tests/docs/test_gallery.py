"""The programs of the gallery run, print what its page says, and draw; the page shows them as they are."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot
from PIL import Image
from scripts import load

ROOT = Path(__file__).parents[2]
LARGEST = 60_000
"""Bytes of a picture."""
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def gallery() -> Any:
    return load("tools/gallery.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the examples, to work in."""
    shutil.copytree(ROOT / "docs" / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with pyplot.style.context("default"):
        yield tmp_path
    pyplot.close("all")


def check_alike(told: str, shown: str) -> None:
    """Compare the words, and the numbers to a quarter: sums are rounded otherwise on other processors."""
    assert NUMBER.sub("0", told).split() == NUMBER.sub("0", shown).split()
    for found, expected in zip(NUMBER.findall(told), NUMBER.findall(shown), strict=True):
        assert float(found) == pytest.approx(float(expected), rel=0.25, abs=0.1)


NAMES = load("tools/gallery.py").NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_program_prints_and_draws(
    name: str, gallery: Any, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    runpy.run_path(f"{name}.py", run_name="__main__")
    check_alike(capsys.readouterr().out, gallery.printed()[name])
    with Image.open(f"{name}.png") as drawn, Image.open(gallery.PICTURES / f"{name}.png") as kept:
        assert drawn.size == kept.size
        assert len(kept.convert("RGB").getcolors(1 << 24) or ()) > 10


@pytest.mark.slow
def test_the_sweep_is_the_same_on_ray(
    gallery: Any, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["sweep.py", "ray"])
    runpy.run_path("sweep.py", run_name="__main__")
    check_alike(capsys.readouterr().out, gallery.printed()["sweep"])


def test_the_page_shows_the_programs_as_they_are(gallery: Any) -> None:
    page = gallery.PAGE.read_text(encoding="utf-8")
    assert page == gallery.page(gallery.printed()), "python tools/gallery.py"
    links, titles = (set(re.findall(each, page, flags=re.MULTILINE)) for each in (r"\(#([\w-]+)\)", r"^## (.+)$"))
    assert links == {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_program_is_there_and_short(gallery: Any) -> None:
    programs = {path.stem: path.read_text(encoding="utf-8") for path in gallery.EXAMPLES.glob("*.py")}
    assert set(programs) - {"late_dqn"} == set(gallery.NAMES)
    assert [name for name in gallery.NAMES if programs[name].count("\n") > 60] == []
    assert {path.stem: path.stat().st_size < LARGEST for path in gallery.PICTURES.iterdir()} == dict.fromkeys(
        gallery.NAMES, True
    )

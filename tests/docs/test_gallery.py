"""The programs of the gallery run, print what its page says, and draw; the page shows them as they are."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
import warnings
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


def executed(name: str, folder: Path) -> Any:
    """Return the notebook of a program after it was run in `folder`."""
    reason = "needs nbformat, nbclient and ipykernel, which the extra `dev` brings"
    for needed in ("ipykernel", "nbformat"):
        pytest.importorskip(needed, reason=reason)
    client = pytest.importorskip("nbclient", reason=reason)
    made = load("tools/notebooks.py").notebook(folder / f"{name}.py")
    for file in folder.glob("*.toml"):
        file.unlink()  # the notebook writes what it needs
    paths = {"metadata": {"path": str(folder)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of what it imports
        client.NotebookClient(made, timeout=600, kernel_name="python3", resources=paths).execute()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_notebook_prints_the_same_and_shows_its_picture(name: str, gallery: Any, folder: Path) -> None:
    outputs = [each for cell in executed(name, folder).cells for each in cell.get("outputs", [])]
    printed = [each.text for each in outputs if each.output_type == "stream" and each.name == "stdout"]
    told = "".join(text for text in printed if not re.match(r"(Over)?[wW]riting \w+\.toml", text))
    check_alike(told, gallery.printed()[name])
    assert any("image/png" in each.get("data", {}) for each in outputs), "no picture is shown"


def test_a_notebook_has_the_program_as_it_is(folder: Path) -> None:
    pytest.importorskip("nbformat", reason="needs nbformat, which the extra `dev` brings")
    notebooks = load("tools/notebooks.py")
    for name in NAMES:
        made = notebooks.notebook(folder / f"{name}.py")
        code = [cell.source for cell in made.cells if cell.cell_type == "code" and "%%writefile" not in cell.source]
        program = (folder / f"{name}.py").read_text(encoding="utf-8")
        assert "".join("".join(code).split()) in "".join(program.split())
        assert len(code) > 1
        assert made.cells[0].source.startswith("# ")
        assert ("%%writefile" in made.cells[1].source) == (folder / f"{name}.toml").exists()


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

"""Labels of any text, and the file names made of them."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated
from belated.runner._experiment import check_label, file_name

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400).filter(str.strip)


@given(texts)
def test_a_file_name_is_safe_everywhere(label: str) -> None:
    name = file_name(check_label("the label", label))
    assert name.isascii()
    assert 0 < len(name) <= 150
    assert not set(name) & set('/\\:*?"<>| \n\0')
    assert name not in (".", "..")
    assert not name.startswith(".")
    assert not name.endswith((".", " "))


@given(texts, texts)
def test_labels_that_differ_have_names_that_differ(left: str, right: str) -> None:
    assert (file_name(left) == file_name(right)) == (left == right)


@pytest.mark.parametrize("label", ["psvi-0.1", "MountainCar-v0", "multinomial-10-20", "a" * 150, "n=3+1"])
def test_a_plain_label_is_its_own_name(label: str) -> None:
    assert file_name(label) == label


@pytest.mark.parametrize(
    "label", ["..", "a/b", "summary.csv", "regret.png", "CON", "nul.x", "a.", "a" * 151, "-x", "~"]
)
def test_a_label_that_could_do_harm_is_not(label: str) -> None:
    assert file_name(label) != label
    assert "~" in file_name(label)


def test_a_derived_name_cannot_be_a_label_of_its_own() -> None:
    """Else a label could be made that has the file of another."""
    derived = file_name("a b")
    assert file_name(derived) != derived


def test_letters_that_look_alike_are_told_apart() -> None:
    both = [unicodedata.normalize(form, "été") for form in ("NFC", "NFD")]
    assert len({file_name(each) for each in both}) == 2
    assert all(file_name(each).startswith("ete~") for each in both)


ODD = [
    "a/b",
    "a",
    "b/a",
    "",
    "x" * 300,
    "x" * 299 + "y",
    "../../up",
    "π ≈ 3",
    "[/red] | $1 _",
    "_",
    "summary.csv",
    "\n.",
]


def test_runs_with_any_labels_are_kept_and_found_again(tmp_path: Path) -> None:
    odd = [label for label in ODD if label]
    experiment = belated.Experiment(
        name="a/b",
        environments={label: belated.RiverSwim(states=3, horizon=2) for label in odd[:3]},
        agents={label: belated.RandomPolicy() for label in odd},
        delays={"b/c": belated.Constant(0), "c": belated.Constant(1)},
        episodes=2,
        seeds=1,
    )
    ids = [run.id for run in experiment.runs()]
    assert len(set(ids)) == len(ids) == 3 * len(odd) * 2
    first = belated.run_experiment(experiment, folder=tmp_path / "rows", jobs=1, progress=False)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").rglob("*.parquet")}
    assert len(kept) == len(ids)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    again = belated.run_experiment(experiment, folder=tmp_path / "rows", jobs=1, progress=False)
    assert again.frame.equals(first.frame)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").rglob("*.parquet")} == kept
    assert again.agents == odd

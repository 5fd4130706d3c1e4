"""The commands of the studies, as the entry points of the installed distribution bring them."""

import json
from pathlib import Path

from commands import call, refused


def test_paper_writes_the_report_and_says_where(tmp_path: Path) -> None:
    copy, only = tmp_path / "copy.json", ("--only", "figure-2", "--only", "figure-3")
    result = call("paper", *only, "--seeds", 2, "--episodes", 30, "--out", tmp_path, "--json", copy)
    assert result.exit_code == 0, result.output
    assert f"the report is {tmp_path / 'index.html'}" in result.output
    assert "wall time" in result.output
    assert (tmp_path / "index.html").is_file()
    assert (tmp_path / "results.json").is_file()
    assert (tmp_path / "paper.md").is_file()
    assert copy.read_bytes() == (tmp_path / "results.json").read_bytes()


def test_exploration_lists_its_numbers(tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    options = ("--only", "riverswim", "--seeds", 2, "--episodes", 5, "--out", tmp_path, "--json", copy)
    result = call("exploration", *options)
    assert result.exit_code == 0, result.output
    listed = json.loads(copy.read_text(encoding="utf-8"))
    assert {(line["environment"], line["seeds"], line["episodes"]) for line in listed} == {("riverswim-5-h20", 2, 5)}
    assert "auto-psvi" in {line["agent"] for line in listed}
    assert all(line["milliseconds_per_episode"] > 0 for line in listed)


def test_paper_suggests_the_nearest_name(tmp_path: Path) -> None:
    assert "did you mean 'table-2'?" in refused(call("paper", "--only", "tabel-2", "--out", tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_study_without_a_number_of_episodes_refuses_one(tmp_path: Path) -> None:
    assert "no one number of episodes" in refused(call("lemmas", "--episodes", 30, "--out", tmp_path))
    assert not list(tmp_path.iterdir())

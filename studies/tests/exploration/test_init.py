"""The study as a whole: its artefacts, what it says of itself, and the way to its page at a tiny size."""

from __future__ import annotations

import re
from pathlib import Path

from belated_studies.exploration import (
    LEFT_OUT,
    PEERS,
    STUDY,
    classic_control,
    nchain,
    paper_problems,
    riverswim,
    testbeds,
    toy_text,
)
from belated_studies.exploration.problems import FULL, QUICK
from belated_studies.exploration.rows import Line
from belated_studies.exploration.section import chart_id
from belated_studies.produce import produce
from belated_studies.study import Played

ARTEFACTS = [
    "nchain", "deepsea", "riverswim", "toy-text", "classic-control", "paper-problems", "testbeds", "paper-agents",
    "lakes", "six-numbers", "grids", "lander", "strangers", "lost", "locks", "dense", "more",
]  # fmt: skip


def test_the_artefacts_stand_in_order_and_share_no_experiment() -> None:
    artefacts = STUDY.artefacts()
    assert [artefact.id for artefact in artefacts] == ARTEFACTS
    names = [one.name for artefact in artefacts for one in artefact.experiments(QUICK)]
    assert len(set(names)) == len(names) == 29


def test_every_curve_of_the_full_study_has_an_id_of_its_own() -> None:
    parts = (nchain, riverswim, toy_text, classic_control, paper_problems, testbeds)
    ids = [chart_id(problem, delay) for part in parts for problem in part.problems() for delay in problem.delays]
    assert len(set(ids)) == len(ids) > 30
    for each in ids:
        assert re.fullmatch("[a-z][a-z0-9-]*", each), each


def test_a_quick_look_says_what_it_is_and_what_is_left_out() -> None:
    few = Played(QUICK.resized(seeds=1), {}, {})
    assert STUDY.remarks(few)[0].startswith("This is a quick look at the smaller problems with 1 seeds;")
    assert STUDY.remarks(few)[1] == LEFT_OUT


def test_a_full_page_says_whether_peers_have_played_and_what_is_not_on_it() -> None:
    times = {f"{name}-times": () for name in ARTEFACTS}
    assert STUDY.remarks(Played(FULL, {}, {}, {**times, "peers-car-dqn": ()}))[2:] == [PEERS]
    del times["nchain-times"], times["toy-text-times"]
    assert STUDY.remarks(Played(FULL, {}, {}, times))[2:] == ["Not on this page: nchain, toy-text."]


def test_an_artefact_is_played_and_listed(tmp_path: Path) -> None:
    tiny = QUICK.resized(seeds=2, episodes=5)
    report = produce(STUDY, tiny, out=tmp_path, only=["riverswim"], jobs=1, progress=False)
    assert [tuple(line) for line in report.lines] == [Line._fields] * len(report.lines)
    assert len(report.lines) == 2 * len({line["agent"] for line in report.lines})
    assert (tmp_path / "exploration.md").is_file()

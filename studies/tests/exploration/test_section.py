"""Names that say where settings come from, curves by blocks, and findings that admit a loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import invented
import numpy as np

from belated.agents import DelayedPSRL
from belated.environments import RiverSwim
from belated_studies.exploration.peers import DQN, PPO, Game, PeerRun
from belated_studies.exploration.problems import AUTO, FULL, NONE, PSRL, QUICK, SET, Bar, Problem, Size, searched
from belated_studies.exploration.rows import Line, timing
from belated_studies.exploration.section import artefact, blocks, called, paces, searches_table
from belated_studies.reports.document import Cell
from belated_studies.study import Artefact, Played

SIZE = QUICK.resized(seeds=3)


def river(**changed: object) -> Problem:
    given = {"bars": {"none": Bar(value=2.0)}, "others": {PSRL: DelayedPSRL()}, "delays": NONE, "small": True}
    return Problem(name="a river", label="river", make=RiverSwim, episodes=10, **{**given, **changed})  # type: ignore[arg-type]


def test_an_agent_is_called_by_where_its_settings_come_from() -> None:
    problem = river(**searched("riverswim", "rivers"))
    assert called(problem, AUTO) == "AutoPSVI (nothing to set)"
    assert called(problem, PSRL) == "Delayed-PSRL (searched: rivers)"
    assert called(river(), PSRL) == "Delayed-PSRL (defaults, not searched for)"
    assert called(problem, DQN, "RL-Zoo's settings") == "DQN (RL-Zoo's settings)"
    assert called(problem, "psvi") == "Delayed-PSVI (searched: riverswim)"
    assert called(problem, "psvi-rivers") == "Delayed-PSVI (searched: rivers)"


def test_what_was_searched_is_told_with_its_budget() -> None:
    (table,) = searches_table("test", [river(**searched("rivers"))])
    rows = {row[2]: row for row in table.rows}
    assert rows["Delayed-PSVI"][:6] == [
        "rivers", "RiverSwim with 8 states and 40 steps", "Delayed-PSVI", "ridge, noise", "12", "44,000",
    ]  # fmt: skip
    assert {row[4:6] == rows["Delayed-PSVI"][4:6] for row in table.rows} == {True}
    assert str(rows["Q-learning"][-1]).startswith("epsilon 0.")


def test_blocks_are_means_of_all_episodes() -> None:
    returns = np.arange(200.0).reshape(2, 100)
    last, means = blocks(returns, points=7)
    assert last[-1] == 100
    sizes = np.diff(last, prepend=0)
    np.testing.assert_allclose((means * sizes).sum(axis=1), returns.sum(axis=1))


def test_the_section_shows_bars_numbers_and_curves() -> None:
    made = artefact("test", 1, "Test", ["said"], lambda: (river(published="others: 4"),), regret=True)
    played = invented.played(made, SIZE, lambda run: 6.0, value=lambda run: 3.0)
    section = made.section(played)
    assert invented.table(section, "test-bars") == [["a river", "none", "at least 2", "3", "reached", SET]]
    rows = invented.table(section, "test-table")
    assert rows[0] == ["a river", "none", "AutoPSVI (nothing to set)", "10", 3.0, 5.0, None, None, 6.0, "others: 4"]
    assert [row[-1] for row in rows] == ["others: 4", "–"]
    (chart,) = section.charts
    assert (chart.y_label, chart.series[0].y[-1]) == ("regret", 6.0)
    returns = artefact("test", 1, "Test", ["said"], lambda: (river(),))
    (chart,) = returns.section(played).charts
    assert chart.level == ("optimum", invented.OPTIMAL)
    assert [series.name for series in chart.series] == ["AutoPSVI", "Delayed-PSRL"]


def test_a_cell_alone_has_the_line_of_the_whole() -> None:
    made = artefact("test", 1, "Test", [], lambda: (river(target=2.5, window=2),))
    played = invented.played(made, SIZE, lambda run: 6.0, value=lambda run: 3.0)
    pick = {"agent": PSRL, "delay": "none", "environment": "river"}
    (whole,) = [line for line in made.lines(played) if line["agent"] == PSRL]
    assert made.line(played.results["river"], pick) == whole
    assert made.cell is not None
    assert made.cell("test", played.results["river"], pick).value == 3.0


def test_the_findings_admit_a_loss() -> None:
    made = artefact("test", 1, "Test", [], lambda: (river(bars={"none": Bar(value=2.0, regret=1.0)}),))

    def played(ours: float, theirs: float) -> Played[Size]:
        def pick(run: object) -> float:
            return ours if run.agent_label == AUTO else theirs  # type: ignore[attr-defined]

        return invented.played(made, SIZE, lambda run: -pick(run), value=pick)

    best, worst = played(3.0, 1.0), played(1.0, 3.0)
    (good,) = made.findings(best)
    assert good == "Test: AutoPSVI reaches 1 of 1 bars."
    assert "test-losses" not in {table.id for table in made.section(best).tables}
    bad, lost = made.findings(worst)
    assert bad.startswith("Test: AutoPSVI reaches 0 of 1 bars; not reached: a river, none (at least 2; ")
    assert lost == "Test: AutoPSVI is not the best everywhere; how often another agent is better: Delayed-PSRL (2)."
    assert invented.table(made.section(worst), "test-losses") == [
        ["a river", "none", "Delayed-PSRL", "return", "3", "1"],
        ["a river", "none", "Delayed-PSRL", "regret", "-3", "-1"],
    ]


def test_what_may_be_chance_is_no_loss() -> None:
    made = artefact("test", 1, "Test", [], lambda: (river(),))

    def value(run: Any) -> float:
        return 3.0 if run.agent_label == AUTO else (2.0, 3.0, 9.0)[run.seed]

    section = made.section(invented.played(made, SIZE, lambda run: 1.0, value=value))
    assert "test-losses" not in {table.id for table in section.tables}


def test_too_few_episodes_are_said() -> None:
    made = artefact("test", 1, "Test", [], lambda: (river(),))
    few = SIZE.resized(episodes=5)
    (told,) = made.findings(invented.played(made, few, lambda run: 1.0))
    assert told == "Test: no bar applies."


def with_peers(*runs: PeerRun) -> tuple[Artefact[Size], Played[Size]]:
    """Return an artefact whose agents returned 2 everywhere, and whose peers did `runs`."""
    made = artefact("test", 1, "Test", [], lambda: (river(target=2.5, window=2),), games={"river": Game("River-v0")})
    times = timing("t", tuple).kind("river", "none", AUTO, 0.5)
    measured = {"test-times": [times], "peers-river-dqn": runs}
    return made, invented.played(made, FULL.resized(seeds=4), lambda run: 1.0, value=lambda run: 2.0, measured=measured)


GOOD = [PeerRun("river", "none", DQN, seed, [1.0, *[3.0] * 9], 10.0 + seed, "its defaults") for seed in range(3)]


def test_peers_stand_in_the_table_the_lines_the_curves_and_the_losses() -> None:
    made, played = with_peers(*GOOD)
    assert [each.name for each in made.measurements] == [
        "test-times",
        "test-steps",
        "peers-river-dqn",
        "peers-river-ppo",
    ]
    section = made.section(played)
    shown = invented.table(section, "test-table")[-1]
    assert shown == ["a river", "none", "DQN (its defaults)", "10", 3.0, 5.0, 3, 10.0]
    (table,) = [each for each in section.tables if each.id == "test-table"]
    assert table.caption.startswith("4 seeds (DQN and PPO: 3), ")
    assert ["a river", "none", "DQN", "return", "3", "2"] in invented.table(section, "test-losses")
    (chart,) = section.charts
    assert [(series.name, series.dashed) for series in chart.series][-1] == ("DQN", True)
    assert chart.series[-1].y.tolist() == [1.0, *[3.0] * 9]
    line = made.lines(played)[-1]
    assert tuple(line) == Line._fields
    assert (line["agent"], line["seeds"], line["value"], line["low"], line["high"]) == (DQN, 3, 3.0, 3.0, 3.0)
    found = made.findings(played)
    assert "Test: AutoPSVI is not the best everywhere; how often another agent is better: DQN (1)." in found
    told = "Test, time of an episode of AutoPSVI: 0.05 (a river, none) times that of DQN."
    assert told in found


def test_where_it_is_fastest_and_slowest_is_told() -> None:
    times = [("slow", AUTO, 3.0), ("slow", "psvi", 2.0), ("fast", AUTO, 1.0), ("fast", "psvi", 2.0)]
    lines = [Line(label, "none", agent, 4, 10, 1.0, 1.0, 1.0, None, None, taken) for label, agent, taken in times]
    (told,) = paces("Test", [replace(river(), label=label, name=label) for label in ("fast", "slow")], lines)
    assert told.endswith("of AutoPSVI: 0.5 (fast, none) to 1.5 (slow, none) times that of Delayed-PSVI.")


def test_a_peer_that_was_not_played_says_why() -> None:
    made, played = with_peers(PeerRun("river", "none", PPO, 0, [], None, "its defaults", "no network"))
    (table,) = [each for each in made.section(played).tables if each.id == "test-table"]
    cell = table.rows[-1][4]
    assert isinstance(cell, Cell)
    assert (table.rows[-1][2], cell.note) == ("PPO (its defaults)", "not played: no network")
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert PPO not in {line["agent"] for line in made.lines(played)}
    assert all("time of an episode" not in told for told in made.findings(played))

"""Names that say where settings come from, curves by blocks, and findings that admit a loss."""

from __future__ import annotations

import invented
import numpy as np

from belated.algorithms import DelayedPSRL
from belated.environments import RiverSwim
from belated.studies.exploration.pieces import artefact, blocks, called
from belated.studies.exploration.problems import AUTO, NONE, PSRL, QUICK, Bar, Problem, borrowed

SIZE = QUICK.resized(seeds=3)


def river(**changed: object) -> Problem:
    given = {"bars": {"none": Bar(value=2.0)}, "others": {PSRL: DelayedPSRL()}, "delays": NONE, "small": True}
    return Problem(name="a river", label="river", make=RiverSwim, episodes=10, **{**given, **changed})  # type: ignore[arg-type]


def test_an_agent_is_called_by_where_its_settings_come_from() -> None:
    problem = river(others=borrowed(), borrowed={"psvi": "RiverSwim"}, tuned=("psvi",))
    assert called(problem, AUTO) == "AutoPSVI (nothing to set)"
    assert called(problem, PSRL) == "Delayed-PSRL (defaults, not searched for)"
    assert called(problem, "psvi") == "Delayed-PSVI (not searched for here: settings of RiverSwim)"
    assert called(river(tuned=("psvi",)), "psvi") == "Delayed-PSVI (tuned)"
    assert called(problem, "epsilon-greedy") == "ε-greedy (not searched for)"


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
    assert invented.table(section, "test-bars") == [["a river", "none", "at least 2", "3", "reached"]]
    rows = invented.table(section, "test-table")
    assert rows[0] == ["a river", "none", "AutoPSVI (nothing to set)", "10", 3.0, 5.0, None, None, 6.0, "others: 4"]
    assert [row[-1] for row in rows] == ["others: 4", "–"]
    (chart,) = section.charts
    assert chart.level == ("optimum", invented.OPTIMAL)
    assert [series.name for series in chart.series] == ["AutoPSVI", "Delayed-PSRL"]


def test_the_findings_admit_a_loss() -> None:
    made = artefact("test", 1, "Test", [], lambda: (river(bars={"none": Bar(value=2.0, regret=1.0)}, tuned=(PSRL,)),))

    def played(ours: float, theirs: float) -> list[str]:
        def pick(run: object) -> float:
            return ours if run.agent_label == AUTO else theirs  # type: ignore[attr-defined]

        return list(made.findings(invented.played(made, SIZE, lambda run: -pick(run), value=pick)))

    (good,) = played(3.0, 1.0)
    assert good == "Test: AutoPSVI reaches 1 of 1 bars."
    bad, lost = played(1.0, 3.0)
    assert bad.startswith("Test: AutoPSVI reaches 0 of 1 bars; not reached: a river, none (at least 2; ")
    assert "where AutoPSVI loses: a river, none: Delayed-PSRL returns 3, AutoPSVI 1" in lost
    assert "Delayed-PSRL has regret -3, AutoPSVI -1" in lost


def test_too_few_episodes_are_said() -> None:
    made = artefact("test", 1, "Test", [], lambda: (river(),))
    few = SIZE.resized(episodes=5)
    (told,) = made.findings(invented.played(made, few, lambda run: 1.0))
    assert told == "Test: not enough episodes to judge."

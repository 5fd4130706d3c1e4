"""What delay costs, and times, on a small scale."""

from __future__ import annotations

import numpy as np
import pytest

from belated import Constant, Experiment, RandomPolicy, RiverSwim
from belated_studies.cells_and_curves import fit_line
from belated_studies.reports.document import Series
from belated_studies.systems import comparisons
from belated_studies.systems.comparisons import Penalty, Timed, time_agents


@pytest.mark.parametrize(
    ("regret", "linear"),
    [
        ([[1.0, 2.0, 3.0], [1.0, 2.1, 3.1]], True),
        ([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]], False),  # it falls
        ([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], False),  # it may as well fall
        ([[1.0, 1.0, 3.0], [1.0, 1.0, 3.0]], False),  # bent: a sixth of its range off the line
    ],
)
def test_a_penalty_is_linear_if_it_grows_beyond_doubt_and_straight(regret: list[list[float]], linear: bool) -> None:
    nothing = Series(name="", x=np.zeros(0), y=np.zeros(0))
    assert Penalty("world", "agent", nothing, fit_line([0, 1, 2], np.array(regret))).linear == linear


def test_every_agent_is_timed_where_its_experiment_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pace(*given: object) -> tuple[float, float, float]:
        asked.append(given)
        return 2.0, 1.0, 3.0

    monkeypatch.setattr(comparisons, "pace", pace)
    worlds, agents = [RiverSwim(3), RiverSwim(4)], {"one": RandomPolicy(), "two": RandomPolicy()}
    experiment = Experiment(
        name="timed", environments=worlds, agents=agents, delays=[Constant(1), Constant(2)], episodes=5, seeds=2
    )
    found = time_agents([experiment])
    assert found == [Timed("timed", "one", 2.0, 1.0, 3.0), Timed("timed", "two", 2.0, 1.0, 3.0)]
    assert asked == [(worlds[0], agents["one"], Constant(1)), (worlds[0], agents["two"], Constant(1))]
    assert (found[0].cell.value, found[0].cell.low, found[0].cell.high) == (2.0, 1.0, 3.0)

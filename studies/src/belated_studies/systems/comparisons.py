"""What several artefacts of the study of systems share: tables by agent, what delay costs, and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from belated.environments import FiniteMDP
from belated.runner import Experiment, Results
from belated_studies.cells_and_curves import NAMES, Line, against_delay, final_regret, name_of, settings_table
from belated_studies.pace import pace
from belated_studies.reports.document import Cell, Chart, Row, Series, Table
from belated_studies.study import Played
from belated_studies.systems.testbeds import Size


def mean_regret(results: Results, **pick: str) -> float:
    """Return the mean over seeds of cumulative regret at the end."""
    return float(final_regret(results, **pick).mean())


def regret_chart(name: str, title: str, caption: str, x_label: str, series: Sequence[Series]) -> Chart:
    """Return curves of cumulative regret."""
    y = "cumulative regret"
    return Chart(id=name, title=title, caption=caption, x_label=x_label, y_label=y, series=series)


def by_agent(
    name: str,
    title: str,
    caption: str,
    columns: Mapping[str, str],
    agents: Iterable[str],
    entry: Callable[[str, str], Cell],
    names: Mapping[str, str] = NAMES,
) -> Table:
    """Return a table with a row for each of `agents` and, below its heading, the `entry` of each of `columns`."""
    rows: list[Row] = [[names.get(agent, agent), *(entry(agent, each) for each in columns)] for agent in agents]
    return Table(id=name, title=title, caption=caption, columns=["Agent", *columns.values()], rows=rows)


def searched(played: Played[Size], name: str, *experiments: str) -> Table:
    """Return the settings of the agents of `experiments`."""
    caption = (
        "Settings that are not defaults were found by a search on other seeds, or are computed from such settings."
    )
    return settings_table(played, name, experiments, caption)


class Penalty(NamedTuple):
    """What delay costs an agent: regret at the end against the mean delay, and the line a + b·E[τ] through it."""

    environment: str
    agent: str
    series: Series
    line: Line

    @property
    def grows(self) -> bool:
        """Whether regret grows with E[τ], beyond doubt."""
        return self.line.slope.low > 0

    @property
    def linear(self) -> bool:
        """Whether it does so within 10 % of a straight line."""
        return self.grows and self.line.deviation <= 0.1


def penalties(results: Results, means: Iterable[int]) -> list[Penalty]:
    """Return what the mean delay costs each agent in each environment."""
    each = list(means)
    return [
        Penalty(environment, agent, *against_delay(results, each, agent, environment=environment))
        for environment in results.environments
        for agent in results.agents
    ]


def penalty_table(name: str, found: Iterable[Penalty]) -> Table:
    """Return the fitted lines."""
    title = "Is the penalty additive and linear in E[τ]?"
    caption = "Regret = a + b·E[τ], fitted per seed; deviation as a share of the curve's range."
    fitted = ["a: regret without delay", "b: regret per unit of mean delay", "Deviation from the line, per cent"]
    rows: list[Row] = [[one.environment, name_of(one.agent), *one.line.cells()] for one in found]
    return Table(id=name, title=title, caption=caption, columns=["Environment", "Agent", *fitted], rows=rows)


class Timed(NamedTuple):
    """Microseconds per episode of an agent of an experiment: the median of the repeats, and their range."""

    experiment: str
    agent: str
    median: float
    low: float
    high: float

    @property
    def cell(self) -> Cell:
        """The time with its range."""
        return Cell(value=self.median, low=self.low, high=self.high, digits=1)


def time_agents(experiments: Iterable[Experiment]) -> list[Timed]:
    """Time every agent in the first environment and under the first delay of its experiment."""
    found = []
    for experiment in experiments:
        first = experiment.runs()[0]
        assert isinstance(first.environment, FiniteMDP)  # the study has no simulator
        for label, agent in experiment.agents.items():
            found.append(Timed(experiment.name, label, *pace(first.environment, agent, first.delay)))
    return found

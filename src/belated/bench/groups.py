"""All that is measured, by name, and the run that measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from belated.bench.engines import engines
from belated.bench.library import against_naive, flatness, fresh_process, large_dimension, long_run, two_cores
from belated.bench.limits import floor, machine
from belated.bench.measure import Measure, unmeasured
from belated.bench.peers import measure_peer, peers
from belated.bench.problems import FULL, QUICK, Effort
from belated.bench.profile import profiles
from belated.bench.report import Report, describe_machine
from belated.validate import choice

Tell = Callable[[str], None]
MeasureGroup = Callable[[Effort, Tell], list[Measure]]


def groups() -> dict[str, MeasureGroup]:
    """Return every group of measures by the name that `--only` takes."""
    plain: dict[str, Callable[[Effort], list[Measure]]] = {
        "naive": against_naive,
        "machine": machine,
        "floor": floor,
        "large-d": large_dimension,
        "flatness": flatness,
        "cores": two_cores,
        "start": fresh_process,
        "long": long_run,
    }
    named: dict[str, MeasureGroup] = {name: _without_news(group) for name, group in plain.items()}
    named["engines"] = lambda effort, tell: measure_engines(effort)
    for name, peer in peers().items():
        named[name] = lambda effort, tell, peer=peer: measure_peer(peer, effort, tell)  # type: ignore[misc]
    return named


def measure_engines(effort: Effort) -> list[Measure]:
    """Compare the engines that play many runs; a quick run has no time for that."""
    if not effort.patient:
        return [unmeasured("engines", "it takes minutes; run without --quick")]
    signs = {"at least": "≥", "at most": "≤"}
    found = []
    for name, values, unit, wanted in engines(min(effort.repeats, 3)):
        words, _, number = wanted.rpartition(" ")
        found.append(Measure(name, tuple(values), target=f"{signs[words]} {number}", note=unit.removeprefix("× ")))
    return found


def _without_news(group: Callable[[Effort], list[Measure]]) -> MeasureGroup:
    return lambda effort, tell: group(effort)


def bench(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    profile: bool = False,
    tell: Tell = lambda text: None,
    known: Mapping[str, MeasureGroup] | None = None,
    effort: Effort | None = None,
) -> Report:
    """Measure the groups named in `only`, or all; `tell` hears what is going on."""
    known = groups() if known is None else known
    chosen = list(dict.fromkeys(choice("--only", name, known) for name in only)) or list(known)
    effort = effort or (QUICK if quick else FULL)
    about = describe_machine()
    found: list[Measure] = []
    for name in chosen:
        tell(f"measuring {name}")
        found += [replace(measure, group=name) for measure in known[name](effort, tell)]
    return Report(found, profiles(effort, tell) if profile else [], about, quick)

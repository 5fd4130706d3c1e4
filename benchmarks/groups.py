"""The groups of measures by name, and the function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from belated._util.validate import choice
from benchmarks.coverage import coverage
from benchmarks.engines import engines
from benchmarks.learning import learning
from benchmarks.library import against_naive, flatness, large_dimension, two_cores
from benchmarks.likelihoods import likelihoods
from benchmarks.limits import floor, machine
from benchmarks.measure import Measure
from benchmarks.peers import measure_peer, peers
from benchmarks.probabilities import probabilities
from benchmarks.problems import FULL, QUICK, Effort
from benchmarks.processes import long_run, start
from benchmarks.profile import profiles
from benchmarks.report import Report, describe_machine
from benchmarks.service import service
from benchmarks.session_coverage import session_coverage
from benchmarks.sessions import sessions
from benchmarks.signals import signals
from benchmarks.silence import silence
from benchmarks.sparse import sparse, sparse_exactness, sparse_learning, sparse_neighbour

Tell = Callable[[str], None]
MeasureGroup = Callable[[Effort, Tell], list[Measure]]


def groups() -> dict[str, MeasureGroup]:
    """Return every group of measures by its name for `--only`."""
    plain = {
        "naive": against_naive,
        "machine": machine,
        "floor": floor,
        "large-d": large_dimension,
        "flatness": flatness,
        "cores": two_cores,
        "start": start,
        "long": long_run,
        "engines": engines,
        "service": service,
        "silence": silence,
        "signals": signals,
        "probabilities": probabilities,
        "coverage": coverage,
        "session-coverage": session_coverage,
    }
    return {
        **{name: lambda effort, tell, group=group: group(effort) for name, group in plain.items()},  # type: ignore[misc]
        "learning": learning,
        "likelihoods": likelihoods,
        "sessions": sessions,
        "sparse": sparse,
        "sparse-learning": sparse_learning,
        "sparse-exactness": sparse_exactness,
        "sparse-neighbour": sparse_neighbour,
        **{
            name: lambda effort, tell, peer=peer: measure_peer(peer, effort, tell)  # type: ignore[misc]
            for name, peer in peers().items()
        },
    }


def bench(
    *,
    quick: bool = False,
    only: Sequence[str] = (),
    profile: bool = False,
    tell: Tell = lambda text: None,
    known: Mapping[str, MeasureGroup] | None = None,
    effort: Effort | None = None,
) -> Report:
    """Measure the groups named in `only`, or all; `tell` is called with progress messages."""
    known = groups() if known is None else known
    chosen = list(dict.fromkeys(choice("--only", name, known) for name in only)) or list(known)
    effort = effort or (QUICK if quick else FULL)
    about = describe_machine()
    found: list[Measure] = []
    for name in chosen:
        tell(f"measuring {name}")
        found += [replace(measure, group=name) for measure in known[name](effort, tell)]
    return Report(found, profiles(effort, tell) if profile else [], about, quick)

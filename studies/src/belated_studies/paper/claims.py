"""What the paper says of its experiments, sentence by sentence, beside what was measured.

A comparison of two numbers is decided if their 95 % intervals over seeds are apart. A claim of several comparisons
holds if all of them go the paper's way, and does not if one goes the other way or is a draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from belated.agents import DelayedLPSVI, DelayedPSVI, DelayedUCBVI
from belated.evaluation import Estimate, mean_interval
from belated_studies.cells_and_curves import against_delay, converged, final_regret, name_of
from belated_studies.paper import computation, delay, figure_1, figure_3, published, sparse_draws, table_2, table_3
from belated_studies.paper.agents import five, trio_and_plain
from belated_studies.paper.comparing import CONVERGED, ENOUGH, close
from belated_studies.paper.setting import DELAYS, LITERAL, TUNED, PaperSize, synthetic
from belated_studies.reports.document import FAILS, HOLDS, OPEN, Block, Claim, Finding
from belated_studies.study import Played

SAMPLERS = ("psvi", "lpsvi")
LITTLE = 0.1
"""A return that changes by no more than this part of itself is robust; one that falls by more deteriorates."""


class Curve(NamedTuple):
    """Of one agent on one problem: its return, its episodes to the highest, and whether it has converged."""

    value: Estimate
    episodes: Estimate
    state: str


def claims(played: Played[PaperSize]) -> list[Claim]:
    """Return every claim that what was played can judge, in the order of the paper."""
    parts = {
        figure_1.RUNS[LITERAL]: _figure_1,
        table_2.RUNS[LITERAL]: _table_2,
        table_3.RUNS[LITERAL]: _sizes,
        figure_3.RUNS[LITERAL]: _figure_3,
        "delay": _delay,
    }
    found = [claim for name, part in parts.items() if name in played.results for claim in part(played)]
    return [*found, *_computation(played)]


def judge(outcomes: Sequence[bool | None]) -> str:
    """Return the verdict on a claim of several comparisons; None is one that is not decided.

    >>> judge([True, True]), judge([True, None]), judge([None, False])
    ('holds', 'cannot be judged', 'does not hold')
    """
    if False in outcomes:
        return FAILS
    return OPEN if None in outcomes else HOLDS


def above(left: Estimate, right: Estimate) -> bool | None:
    """Return whether `left` is the larger; None if the intervals meet, unless both are the same number throughout."""
    if left.low > right.high:
        return True
    return False if left.high < right.low or close(left.value, right.value, 1e-3) else None


def sooner(left: Curve, right: Curve) -> bool | None:
    """Return whether `left` was at its highest earlier; a curve that still moves is later than one that rests."""
    rests = [one.state == CONVERGED for one in (left, right)]
    if rests == [False, False]:
        return None
    return above(right.episodes, left.episodes) if all(rests) else rests[0]


def _claim(
    played: Played[PaperSize], text: str, where: str, findings: Mapping[Block, Finding], because: str = ""
) -> Claim:
    """Return a claim; what makes the difference is told where there is one, and nothing holds after few episodes."""
    if played.size.episodes < ENOUGH:
        short = f"only {played.size.episodes} of the {ENOUGH} episodes that the paper reports"
        findings = {block: Finding(OPEN, f"{found.evidence}; {short}") for block, found in findings.items()}
    printed, tuned = findings.get(LITERAL), findings.get(TUNED)
    differs = printed is not None and tuned is not None and printed.verdict != tuned.verdict
    return Claim(claim=text, where=where, printed=printed, tuned=tuned, because=because if differs else "")


def _figure_1(played: Played[PaperSize]) -> Iterator[Claim]:
    findings = {}
    for block, name in figure_1.RUNS.items():
        returns = {
            agent: [converged(played.results[name], agent=agent, delay=each).value for each in DELAYS]
            for agent in SAMPLERS
        }
        robust = [min(values) >= (1 - LITTLE) * max(values) for values in returns.values()]
        findings[block] = Finding(
            judge(robust),
            ", ".join(f"{_short(agent)} {_span(values)}" for agent, values in returns.items())
            + " over the three delays, |A| = 50",
        )
    yield _claim(
        played,
        "Delayed-PSVI and Delayed-LPSVI demonstrate robust performance under both well-behaved and long-tail delays",
        "figure-1",
        findings,
        _stuck_chain(played),
    )


def _table_2(played: Played[PaperSize]) -> Iterator[Claim]:
    returns = {
        block: {
            (agent, each): converged(played.results[name], agent=agent, delay=each)
            for agent in (*SAMPLERS, "ucbvi")
            for each in DELAYS
        }
        for block, name in table_2.RUNS.items()
    }
    for agent in SAMPLERS:
        findings = {}
        for block, found in returns.items():
            outcomes = [above(found[agent, each], found["ucbvi", each]) for each in DELAYS]
            listed = ", ".join(
                f"{each} {found[agent, each].value:.2f} and {found['ucbvi', each].value:.2f}" for each in DELAYS
            )
            won = f"above UCBVI under {outcomes.count(True)} of {len(outcomes)} delays"
            findings[block] = Finding(judge(outcomes), f"{won}: {listed}")
        yield _claim(
            played,
            f"under different types of delays {name_of(agent)} achieves higher return than Delayed-UCBVI",
            "table-2",
            findings,
            _smaller_bonus() if agent == "psvi" else _stuck_chain(played),
        )
    findings = {}
    for block, found in returns.items():
        light, heavy = found["ucbvi", "poisson"].value, found["ucbvi", "pareto"].value
        told = (
            f"{light:.2f} under Poisson delays, {heavy:.2f} under Pareto delays after {played.size.episodes} episodes"
        )
        findings[block] = Finding(judge([heavy < (1 - LITTLE) * light]), told)
    yield _claim(
        played,
        "performance of Delayed-UCBVI can dramatically deteriorate in the presence of long-tailed delays",
        "table-2",
        findings,
        _smaller_bonus(),
    )
    yield _ucbvi_computation(played, returns[LITERAL]["ucbvi", "pareto"].value, returns[TUNED]["ucbvi", "pareto"].value)


def _ucbvi_computation(played: Played[PaperSize], printed: float, tuned: float) -> Claim:
    """Return the claim on why UCBVI degrades: the same computation with other settings must degrade as well."""
    times = {one.agent: one.microseconds for one in played.measured.get(table_2.PACE.name, ())}
    took = ", ".join(f"{_short(agent)} {time:.0f}" for agent, time in times.items())
    paced = f", and an episode takes {took} µs" if times else ""
    told = (
        f"returns are counted by episode, whatever an episode takes{paced}; the same computation with tuned settings "
        f"ends at {tuned:.2f} in place of {printed:.2f} under Pareto delays: it is the bonus"
    )
    verdict = FAILS if tuned >= (1 - LITTLE) * synthetic(40).optimal_value else OPEN
    return _claim(
        played,
        "the performance of Delayed-UCBVI degrades under long-tail delays, resulting from its computational "
        "inefficiency in iteratively constructing confidence intervals",
        "table-2",
        {LITERAL: Finding(verdict, told)},
    )


def _sizes(played: Played[PaperSize]) -> Iterator[Claim]:
    """Yield what Tables 3 and 4 are said to show."""
    curves = {
        block: {
            (agent, pairs): _curve(played, name, agent=agent, environment=world)
            for agent in five(block)
            for pairs, world in table_3.SIZES.items()
        }
        for block, name in table_3.RUNS.items()
    }
    for agent in ("psvi-0.1", "lpsvi"):
        findings = {}
        for block, found in curves.items():
            outcomes = [sooner(found[agent, pairs], found["ucbvi", pairs]) for pairs in table_3.SIZES]
            ours, theirs = (_listed(found[one, pairs] for pairs in table_3.SIZES) for one in (agent, "ucbvi"))
            told = f"sooner than UCBVI in {outcomes.count(True)} of {len(outcomes)} sizes: {ours} against {theirs}"
            returns = [found[agent, pairs].value.value for pairs in table_3.SIZES]
            findings[block] = Finding(judge(outcomes), f"{told} episodes, at returns of {_span(returns)}")
        yield _claim(
            played,
            f"{name_of(agent)} exhibits faster convergence compared to Delayed-UCBVI",
            "table-3",
            findings,
            _stuck_chain(played) if agent == "lpsvi" else _wide_draws(),
        )
    findings = {}
    for block, found in curves.items():
        outcomes = [sooner(found["psvi-0.1", pairs], found["psvi-0.3", pairs]) for pairs in table_3.SIZES]
        small, large = (_listed(found[one, pairs] for pairs in table_3.SIZES) for one in ("psvi-0.1", "psvi-0.3"))
        won = f"σ = 0.1 sooner than σ = 0.3 in {outcomes.count(True)} of {len(outcomes)} sizes"
        can = [outcome for outcome in outcomes if outcome is not None] or outcomes  # "can": where it is decided
        findings[block] = Finding(judge(can), f"{won}: {small} against {large} episodes")
    yield _claim(
        played,
        "decreasing the noise scaling factor σ for Delayed-PSVI can yield faster convergence",
        "table-3",
        findings,
    )
    findings = {}
    for block, found in curves.items():
        spans = {agent: [found[agent, pairs].value.value for pairs in table_3.SIZES] for agent in ("psvi-0.1", "lpsvi")}
        steady = [min(values) >= (1 - LITTLE) * max(values) for values in spans.values()]
        listed = ", ".join(f"{_short(agent)} {_span(each)}" for agent, each in spans.items())
        findings[block] = Finding(judge(steady), f"{listed} from |S||A| = 20 to 200")
    yield _claim(
        played,
        "when employing feature mapping, performance is much less dependent on the sizes of state and action space",
        "table-4",
        findings,
        _stuck_chain(played),
    )
    findings = {}
    for block, found in curves.items():
        pairs_of = [(found["lpsvi", p].value.value, found["psvi-0.1", p].value.value) for p in table_3.SIZES]
        ours, theirs = (" / ".join(f"{value:.2f}" for value in side) for side in zip(*pairs_of, strict=True))
        told = f"returns {ours} against {theirs} for |S||A| = 20 / 40 / 100 / 200"
        findings[block] = Finding(judge([left >= (1 - LITTLE) * right for left, right in pairs_of]), told)
    yield _claim(
        played,
        "Delayed-LPSVI achieves appealing performance as Delayed-PSVI",
        "table-4",
        findings,
        _stuck_chain(played),
    )
    optima = {pairs: synthetic(pairs).optimal_value for pairs in table_3.SIZES}
    same = all(close(one, published.OPTIMAL_RETURN, 1e-9) for one in optima.values())
    told = ", ".join(f"{one:.2f}" for one in optima.values())
    yield Claim(
        claim="the set of environments with identical d and H has the same optimal value, 11.96",
        where="table-4",
        printed=Finding(judge([same]), f"{told} for |S||A| = 20, 40, 100, 200, by backward induction"),
    )


def _figure_3(played: Played[PaperSize]) -> Iterator[Claim]:
    regrets = {
        block: {agent: mean_interval(final_regret(played.results[name], agent=agent)) for agent in (*SAMPLERS, "ucbvi")}
        for block, name in figure_3.RUNS.items()
    }
    told = {
        block: ", ".join(f"{_short(agent)} {regret.value:,.0f}" for agent, regret in found.items())
        for block, found in regrets.items()
    }
    findings = {
        block: Finding(judge([above(found["ucbvi"], found[agent]) for agent in SAMPLERS]), f"regret {told[block]}")
        for block, found in regrets.items()
    }
    yield _claim(
        played,
        "both Delayed-PSVI and Delayed-LPSVI outperform Delayed-UCBVI in the sparse-reward setting",
        "figure-3",
        findings,
    )
    findings = {
        block: Finding(
            FAILS if above(found["lpsvi"], found["psvi"]) else HOLDS,
            f"regret {found['lpsvi'].value:,.0f} against {found['psvi'].value:,.0f} of Delayed-PSVI",
        )
        for block, found in regrets.items()
    }
    yield _claim(
        played, "Delayed-LPSVI is able to maintain the order-optimal regret as Delayed-PSVI", "figure-3", findings
    )


def _delay(played: Played[PaperSize]) -> Iterator[Claim]:
    lines = {agent: against_delay(played.results["delay"], delay.MEANS, agent)[1] for agent in SAMPLERS}
    told = ", ".join(
        f"{_short(agent)} {line.slope.value:.1f} an episode of mean delay, {100 * line.deviation:.0f} % off a line"
        for agent, line in lines.items()
    )
    verdict = judge([line.deviation <= LITTLE and line.slope.low > 0 for line in lines.values()])
    yield _claim(
        played,
        "the presence of delay incurs an additive regret term, linear in E[τ]",
        "delay",
        {TUNED: Finding(verdict, told)},
    )


def _computation(played: Played[PaperSize]) -> list[Claim]:
    """Return the claims on what an episode takes: at d = 10, and as d grows where that was measured."""
    found = []
    times = {one.agent: one.microseconds for one in played.measured.get(table_2.PACE.name, ())}
    if times:
        told = (
            f"an episode takes Delayed-LPSVI {times['lpsvi']:.0f} µs and Delayed-PSVI {times['psvi']:.0f} µs at d = 10"
        )
        found.append(
            Claim(
                claim="Delayed-LPSVI reduces computation through approximate sampling with Langevin dynamics",
                where="table-2",
                printed=Finding(HOLDS if times["lpsvi"] < times["psvi"] else FAILS, told),
            )
        )
    timings = played.measured.get("computation")
    if timings:
        exact, chain = (computation.exponent(timings, one) for one in (computation.EXACT, computation.PLAIN))
        told = f"time grows like d^{exact:.1f} for exact draws and d^{chain:.1f} for chains of N = 40 steps, d ≥ 100"
        sparse = played.measured.get(computation.SPARSE.name)
        if sparse:
            told += f". {sparse_draws.told(sparse).rstrip('.')}"
        found.append(
            Claim(
                claim="Delayed-LPSVI reduces the computational overhead of Delayed-PSVI by Õ(d²)",
                where="computation",
                printed=Finding(HOLDS if chain <= exact - 1 else FAILS, told),
            )
        )
    return found


def _curve(played: Played[PaperSize], name: str, **pick: str) -> Curve:
    results = played.results[name]
    counted = table_3.COMPARISON.measured(results, played.size.episodes, **pick)
    return Curve(converged(results, **pick), counted.estimate, counted.state)


def _listed(curves: Iterator[Curve]) -> str:
    """Return episodes to the highest return, with a sign before those of curves that still move."""
    return " / ".join(f"{'' if one.state == CONVERGED else '≥ '}{one.episodes.value:,.0f}" for one in curves)


def _span(values: Sequence[float]) -> str:
    """Return the least and the greatest of `values`, or the one they share.

    >>> _span([11.96, 11.96]), _span([3.24, 8.25, 3.92])
    ('11.96', '3.24 to 8.25')
    """
    ends = [f"{end:.2f}" for end in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


def _short(agent: str) -> str:
    return name_of(agent).removeprefix("Delayed-").partition(" (")[0]


# What makes the difference is read off the settings themselves.


def _stuck_chain(played: Played[PaperSize]) -> str:
    """Return what is wrong with the printed chain: a plain one of equal length with other settings does well."""
    printed, best = five(LITERAL)["lpsvi"], trio_and_plain(TUNED)["lpsvi-plain"]
    assert isinstance(printed, DelayedLPSVI)
    assert isinstance(best, DelayedLPSVI)
    assert (printed.sampler, printed.steps, printed.step_ratio) == (best.sampler, best.steps, best.step_ratio)
    results, reached = played.results.get(table_2.RUNS[TUNED]), ""
    if results is not None:
        values = [converged(results, agent="lpsvi-plain", delay=each).value for each in DELAYS]
        reached = f" reaches {_span(values)} of 11.96 in Table 2"
    plain = f"a plain chain of that length{reached or ' moves'}"
    return (
        f"the printed γ = {printed.temperature:g} and σ = {printed.noise:g} leave a chain of {printed.steps} steps "
        f"where it is: with γ = {best.temperature:.3g} and σ = {best.noise:g} {plain}"
    )


def _smaller_bonus() -> str:
    printed, best = five(LITERAL)["ucbvi"], five(TUNED)["ucbvi"]
    assert isinstance(printed, DelayedUCBVI)
    assert isinstance(best, DelayedUCBVI)
    return f"the printed bonus c_β = {printed.bonus_ratio:g} is too large (tuned: {best.bonus_ratio:.2g})"


def _wide_draws() -> str:
    printed, best = five(LITERAL)["psvi-0.1"], five(TUNED)["psvi-0.1"]
    assert isinstance(printed, DelayedPSVI)
    assert isinstance(best, DelayedPSVI)
    return f"the printed ν = √d·H = {printed.scale:.0f} draws too widely (tuned: {best.scale:.2g})"

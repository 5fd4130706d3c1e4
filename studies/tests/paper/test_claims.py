"""The claims of the paper: their verdicts on rows made by hand, and those that are kept against the kept numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import made
from small import SMALL

from belated.evaluation import Estimate
from belated_studies.paper import figure_1, figure_3, table_2, table_3
from belated_studies.paper.claims import Curve, above, claims, sooner
from belated_studies.paper.setting import FULL, PaperSize
from belated_studies.paper.table_2 import Pace
from belated_studies.reports.document import VERDICTS, Claim
from belated_studies.study import Played

KEPT = Path(__file__).parents[3] / "docs" / "results" / "results.json"


def _estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, level=0.95, seeds=2)


def test_a_comparison_is_decided_if_intervals_are_apart() -> None:
    low, wide, high = _estimate(1.0, 0.9, 1.1), _estimate(1.5, 1.0, 2.5), _estimate(3.0, 2.9, 3.1)
    assert [above(high, low), above(low, high), above(wide, low)] == [True, False, None]
    assert above(high, high) is False, "a draw is no win"


def test_a_curve_that_rests_was_sooner_than_one_that_moves() -> None:
    early, late = _estimate(10.0, 9.0, 11.0), _estimate(20.0, 19.0, 21.0)
    rests, moves = (Curve(early, early, state) for state in ("converged", "still rising"))
    assert sooner(rests, rests._replace(episodes=late)) is True
    assert sooner(rests._replace(episodes=late), rests) is False
    assert sooner(rests._replace(episodes=late), moves) is True
    assert sooner(moves, rests) is False
    assert sooner(moves, moves) is None


def _played(values: dict[str, float], size: PaperSize = FULL, pareto: float | None = None) -> Played[PaperSize]:
    """Return what is played if every agent has one value throughout; UCBVI another under Pareto delays."""
    experiments = {
        one.name: one
        for artefact in (figure_1.ARTEFACT, table_2.ARTEFACT, table_3.ARTEFACT, figure_3.ARTEFACT)
        for one in artefact.experiments(size)
    }

    def value(agent: str, delay: str) -> float:
        found = values[agent.split("-")[0]]
        return pareto if pareto is not None and agent == "ucbvi" and delay == "pareto" else found

    results = {
        name: made(
            {
                (run.environment_label, run.delay_label, run.agent_label): [
                    [value(run.agent_label, run.delay_label)] * 60
                ]
                * 2
                for run in experiment.runs()
            },
            optimal=11.96,
        )
        for name, experiment in experiments.items()
    }
    times = [Pace("psvi", 20.0), Pace("lpsvi", 200.0), Pace("ucbvi", 25.0)]
    return Played(size, experiments, results, {"pace": times})


def _verdicts(played: Played[PaperSize]) -> dict[str, str | None]:
    return {one.claim: None if one.printed is None else one.printed.verdict for one in claims(played)}


def test_verdicts_follow_the_rows() -> None:
    good = _verdicts(_played({"psvi": 11.8, "lpsvi": 11.9, "ucbvi": 9.0}, pareto=1.0))
    worse = _verdicts(_played({"psvi": 8.0, "lpsvi": 5.0, "ucbvi": 11.9}))
    assert len(good) == len(worse) == 14

    def both(words: str) -> tuple[str | None, str | None]:
        (claim,) = [one for one in good if words in one]
        return good[claim], worse[claim]

    assert both("Delayed-PSVI achieves higher return") == ("holds", "does not hold")
    assert both("Delayed-LPSVI achieves higher return") == ("holds", "does not hold")
    assert both("dramatically deteriorate") == ("holds", "does not hold")
    assert both("appealing performance") == ("holds", "does not hold")
    assert both("outperform Delayed-UCBVI in the sparse") == ("holds", "does not hold")
    assert both("order-optimal") == ("holds", "does not hold")
    assert both("robust performance") == ("holds", "holds")
    assert both("same optimal value") == ("holds", "holds")
    assert both("reduces computation") == ("does not hold", "does not hold")
    # UCBVI of the same computation does well with tuned settings in the second, and not in the first
    assert both("computational inefficiency") == ("cannot be judged", "does not hold")


def test_few_episodes_judge_nothing_that_is_played() -> None:
    found = claims(_played({"psvi": 11.8, "lpsvi": 11.9, "ucbvi": 9.0}, SMALL))
    judged = [one.claim for one in found if one.printed is not None and one.printed.verdict != "cannot be judged"]
    assert [text.split(" ")[0] for text in judged] == ["the", "Delayed-LPSVI"]  # the optimum, and what was timed


def test_what_was_not_played_is_not_claimed() -> None:
    whole = _played({"psvi": 11.8, "lpsvi": 11.9, "ucbvi": 9.0})
    some = replace(whole, results={name: whole.results[name] for name in figure_3.RUNS.values()}, measured={})
    assert {one.where for one in claims(some)} == {"figure-3"}


def test_a_claim_is_one_sentence() -> None:
    for one in claims(_played({"psvi": 11.8, "lpsvi": 11.9, "ucbvi": 9.0})):
        assert isinstance(one, Claim)
        assert one.sentence.startswith(f"“{one.claim}” (")
        assert one.sentence.endswith(".")
        assert "with the printed settings" in one.sentence


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def _cells(kept: dict[str, Any], where: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["row"], one["column"]): one for one in kept["results"] if one["where"] == where}


def _claim(kept: dict[str, Any], words: str) -> dict[str, Any]:
    (found,) = [one for one in kept["claims"] if words in one["claim"]]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("agent", ["Delayed-PSVI", "Delayed-LPSVI"])
def test_kept_claims_on_returns_are_those_of_the_kept_table(kept: dict[str, Any], agent: str) -> None:
    claim = _claim(kept, f"{agent} achieves higher return")
    for block, found in (("literal", claim), ("tuned", claim["tuned"])):
        cells = _cells(kept, f"table-2-{block}")
        columns = list(dict.fromkeys(column for _, column in cells))
        ours, theirs = ([cells[name, column] for column in columns] for name in (agent, "Delayed-UCBVI"))
        won = [left["low"] > right["high"] for left, right in zip(ours, theirs, strict=True)]
        assert f"above UCBVI under {sum(won)} of 3 delays" in found["evidence"]
        assert found["verdict"] == ("holds" if all(won) else "does not hold")
        for left, right in zip(ours, theirs, strict=True):
            assert f"{left['value']:.2f} and {right['value']:.2f}" in found["evidence"]


def test_kept_claims_on_riverswim_are_those_of_the_kept_table(kept: dict[str, Any]) -> None:
    claim, blocks = _claim(kept, "outperform Delayed-UCBVI"), {"literal": {}, "tuned": {}}  # type: ignore[var-annotated]
    for one in kept["results"]:
        if one["where"] == "figure-3-ends" and one["column"] == "Cumulative regret":
            blocks[one["block"]][one["row"]] = one
    for block, found in (("literal", claim), ("tuned", claim["tuned"])):
        for name in ("PSVI", "LPSVI", "UCBVI"):
            assert f"{name} {blocks[block][f'Delayed-{name}']['value']:,.0f}" in found["evidence"]
        worst = max(blocks[block][f"Delayed-{name}"]["high"] for name in ("PSVI", "LPSVI"))
        assert found["verdict"] == ("holds" if worst < blocks[block]["Delayed-UCBVI"]["low"] else "does not hold")


def test_nearly_every_compared_number_is_judged(kept: dict[str, Any]) -> None:
    tables = ("table-2-", "table-3-", "table-4-")
    compared = [one for one in kept["results"] if one["published"] is not None and one["where"].startswith(tables)]
    assert len(compared) == 98
    assert {one["verdict"] for one in compared} <= set(VERDICTS)
    assert np.mean([one["verdict"] == "cannot be judged" for one in compared]) <= 0.05
    printed = {one["verdict"] for one in compared if one["block"] == "literal"}
    assert "reproduced" in printed
    assert not {"reproduced", "not reproduced"} & {one["verdict"] for one in compared if one["block"] == "tuned"}

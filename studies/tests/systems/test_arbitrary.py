"""The multi-batch reduction, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.agents import MultiBatch
from belated.runner import Run
from belated_studies.systems.arbitrary import ARTEFACT
from belated_studies.systems.testbeds import QUICK

SIZE = QUICK.resized(seeds=2)
REGRET = {
    "psvi": 10.0,
    "multi-batch-psvi": 20.0,
    "multi-batch-psvi-all": 15.0,
    "lpsvi": 30.0,
    "multi-batch-lpsvi": 25.0,  # better than its base
    "multi-batch-lpsvi-all": 26.0,
    "ucbvi": 40.0,
    "multi-batch-ucbvi": 99.0,  # worse than random
    "multi-batch-ucbvi-all": 50.0,
    "random": 60.0,
}
NAMES = [
    "Delayed-PSVI",
    "multi-batch around Delayed-PSVI",
    "multi-batch around Delayed-PSVI, stragglers kept",
    "Delayed-LPSVI",
    "multi-batch around Delayed-LPSVI",
    "multi-batch around Delayed-LPSVI, stragglers kept",
    "Delayed-UCBVI",
    "multi-batch around Delayed-UCBVI",
    "multi-batch around Delayed-UCBVI, stragglers kept",
    "random",
]


def regret(run: Run) -> float:
    """Return that of the agent; where feedback is lost, one more is worse than random."""
    worse = 100.0 if (run.agent_label, run.delay_label) == ("multi-batch-lpsvi", "half-lost") else 0.0
    return REGRET[run.agent_label] + (0.5 if run.delay_label == "pareto-1" else worse)


def test_every_base_stands_alone_and_in_both_reductions() -> None:
    (experiment,) = ARTEFACT.experiments(SIZE)
    assert list(experiment.agents) == list(REGRET)
    for base in ("psvi", "lpsvi", "ucbvi"):
        dropping, keeping = experiment.agents[f"multi-batch-{base}"], experiment.agents[f"multi-batch-{base}-all"]
        assert dropping == MultiBatch(base=experiment.agents[base])  # type: ignore[arg-type]
        assert keeping == MultiBatch(base=experiment.agents[base], drop_stragglers=False)  # type: ignore[arg-type]


def test_the_tables_call_the_reductions_by_what_they_are() -> None:
    section = ARTEFACT.section(invented.played(ARTEFACT, SIZE, regret, value=lambda run: len(run.agent_label) / 2))
    regrets, values = (invented.table(section, f"arbitrary-{name}") for name in ("regret", "values"))
    lost = [r + 100.0 * (label == "multi-batch-lpsvi") for label, r in REGRET.items()]
    assert regrets == [[name, r, r + 0.5, r, q] for name, r, q in zip(NAMES, REGRET.values(), lost, strict=True)]
    assert values == [[name, *[len(label) / 2] * 4] for name, label in zip(NAMES, REGRET, strict=True)]
    assert f"the optimum is {invented.OPTIMAL:.2f}" in section.tables[0].caption
    (chart,) = section.charts
    assert {series.name: float(series.y[-1]) for series in chart.series} == {
        NAMES[0]: 10.0,
        NAMES[1]: 20.0,
        NAMES[2]: 15.0,
        "random": 60.0,
    }


def test_the_finding_counts_who_learns_and_whom_the_reduction_helps() -> None:
    (told,) = ARTEFACT.findings(invented.played(ARTEFACT, SIZE, regret))
    assert "a mean (5 of 6 better than random)" in told
    assert "is lost (4 of 6); around 1 of 3 bases" in told

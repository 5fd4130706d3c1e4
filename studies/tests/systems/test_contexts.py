"""Logistic rewards and replayed tables, from rows with known numbers."""

from __future__ import annotations

import invented
import pytest

from belated_studies.systems.contexts import ARTEFACT
from belated_studies.systems.testbeds import QUICK

pytest.importorskip("sklearn", reason="the tables come with scikit-learn")
SIZE = QUICK.resized(seeds=2)


def test_regret_of_the_logistic_bandit_and_right_answers_of_every_table() -> None:
    right = {"digits": 0.5, "wine": 0.25, "breast-cancer": 0.125, "logistic": 0.0}
    section = ARTEFACT.section(
        invented.played(
            ARTEFACT,
            SIZE,
            lambda run: float(len(run.agent_label)),
            value=lambda run: right[run.environment_label] * (1 + (run.agent_label == "pslb")),
        )
    )
    assert invented.table(section, "contexts-logistic") == [
        ["Delayed OFU, logistic", 12.0],
        ["Delayed OFU", 3.0],
        ["Delayed-PSLB", 4.0],
        ["random", 6.0],
    ]
    assert invented.table(section, "contexts-replay") == [
        ["Delayed-PSLB", 1.0, 0.5, 0.25],
        ["Delayed OFU", 0.5, 0.25, 0.125],
        ["random", 0.5, 0.25, 0.125],
    ]


def test_the_logistic_agent_differs_from_the_linear_one_in_its_link_only() -> None:
    agents = {name: agent.to_dict() for name, agent in ARTEFACT.experiments(SIZE)[0].agents.items()}  # type: ignore[attr-defined]
    logistic, linear = agents["ofu-logistic"], agents["ofu"]
    assert {name for name in linear if linear[name] != logistic[name]} == {"link"}

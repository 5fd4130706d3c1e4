"""The artefact of generated trials, from rows with known numbers."""

from __future__ import annotations

import invented

from belated.environments.trials import GENERATED
from belated_studies.trials.generated import ARTEFACT, CASES, SCENE
from belated_studies.trials.settings import AGE, QUICK

SIZE = QUICK.resized(seeds=3)


def test_every_generated_trial_has_a_row_of_each_length() -> None:
    played = invented.played(ARTEFACT, SIZE, lambda run: (60.0 if run.agent_label == AGE else 80.0) + run.seed % 7)
    rows = invented.table(ARTEFACT.section(played), "generated-table")
    assert len(rows) == len(CASES) + 1 == 3 * (len(GENERATED) - 1) + 1
    assert {row[0] for row in rows} == set(GENERATED)
    assert rows[0][:3] == [SCENE.trial, "3.33", "20,000"]
    told = ARTEFACT.findings(played)
    assert told[0].startswith("A slow good arm beside a fast bad one: 24 % less regret")
    assert len(told) == 4

"""The readings: which agents and worlds they are, and where their rows come from."""

from __future__ import annotations

from small import SMALL

import belated
from belated_studies.paper.details import CHAINS, READINGS, experiments


def test_every_reading_has_its_rows() -> None:
    declared = {one.name: one for one in experiments(SMALL)}
    for reading in READINGS:
        runs = declared[reading.experiment].runs()
        world, delay = reading.pick.get("environment"), reading.pick.get("delay")
        played = {
            run.agent_label
            for run in runs
            if world in (None, run.environment_label) and delay in (None, run.delay_label)
        }
        assert set(reading.agents.values()) <= played


def test_a_reading_of_a_chain_changes_its_start_and_its_noise() -> None:
    assert [reading.label for reading in CHAINS] == [
        *("episode-1.0", "episode-0.1", "step-1.0", "step-0.1", "cold-1.0", "cold-0.1")
    ]
    changed = CHAINS[-1].of(belated.DelayedLPSVI(temperature=0.02))
    assert isinstance(changed, belated.DelayedLPSVI)
    assert (changed.warm_start, changed.noise, changed.sampler, changed.temperature) == ("cold", 0.1, "collapsed", 0.02)


def test_ties_go_first_and_the_other_state_starts_where_they_say_so() -> None:
    details = next(one for one in experiments(SMALL) if one.name == "details")
    for label, agent in details.agents.items():
        assert agent.ties == ("first" if label.endswith("-first") else "random")  # type: ignore[attr-defined]
    worlds = {run.environment_label: run.environment for run in details.runs()}
    starts = {label: world.start for label, world in worlds.items() if isinstance(world, belated.FiniteMDP)}
    assert (starts["base"][0], starts["from-1"][1]) == (1.0, 1.0)

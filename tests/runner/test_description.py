"""The description of a run: one, wherever it is asked for, with what made it."""

from __future__ import annotations

import json

import pytest

import belated
from belated._util.version import stamp
from belated.runner import Run, Simulation
from belated.runner._description import check_about, defaults_of

WORLD, ALGORITHM, LAW = belated.RiverSwim(), belated.DelayedPSVI(), belated.Poisson(3)


@pytest.mark.parametrize("every", [1, 7])
def test_a_run_and_its_simulation_describe_themselves_alike(every: int) -> None:
    run = Run("x", "river", "psvi", "late", WORLD, ALGORITHM, LAW, 50, 3, every)
    simulation = Simulation(WORLD, ALGORITHM, LAW, episodes=50, seed=3, record_every=every)
    assert run.describe() == simulation.describe()
    assert run.describe() == {
        "environment": WORLD.to_dict(),
        "agent": ALGORITHM.to_dict(),
        "delay": LAW.to_dict(),
        "episodes": 50,
        "seed": 3,
        **({"record_every": 7} if every == 7 else {}),
        "made_by": stamp(),
    }


def test_what_differs_is_named() -> None:
    about = Simulation(WORLD, ALGORITHM, LAW, episodes=50, seed=3).describe()
    kept = json.loads(json.dumps(about))
    check_about("the file", kept, about, accept_old=False)
    for name, value in {"seed": 4, "record_every": 2, "agent": None}.items():
        with pytest.raises(belated.InvalidInputError, match=f"^the file holds rows of other settings: {name} was "):
            check_about("the file", {**kept, name: value}, about, accept_old=True)
    with pytest.raises(belated.InvalidInputError, match=r"^the file was made by belated of a version it does not tell"):
        check_about("the file", {**kept, "made_by": None}, about, accept_old=False)


def test_settings_that_came_later_are_accepted_at_their_defaults_if_old_rows_are() -> None:
    def check(now: belated.AutoPSVI, *, accept_old: bool, lacking: str = "forgetting") -> None:
        kept = json.loads(json.dumps(Simulation(WORLD, belated.AutoPSVI(), LAW, episodes=50, seed=3).describe()))
        del kept["agent"][lacking]
        about = Simulation(WORLD, now, LAW, episodes=50, seed=3).describe()
        check_about("the file", kept, about, accept_old=accept_old, defaults=defaults_of(now))

    check(belated.AutoPSVI(), accept_old=True)
    for now, accept_old in ((belated.AutoPSVI(), False), (belated.AutoPSVI(forgetting=False), True)):
        with pytest.raises(belated.InvalidInputError, match="other settings: agent was "):
            check(now, accept_old=accept_old)
    with pytest.raises(belated.InvalidInputError, match="other settings: agent was "):
        check(belated.AutoPSVI(prior=0.5), accept_old=True)
    with pytest.raises(belated.InvalidInputError, match="other settings: agent was "):
        check(belated.AutoPSVI(), accept_old=True, lacking="algorithm")


def test_rows_of_strict_sums_do_not_mix_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Simulation(WORLD, ALGORITHM, LAW, episodes=50, seed=3).describe()
    monkeypatch.setattr("belated.runner._description.STRICT", True)
    strict = Simulation(WORLD, ALGORITHM, LAW, episodes=50, seed=3).describe()
    with pytest.raises(belated.InvalidInputError, match="other settings: strict was None, now it is True"):
        check_about("the file", fast, strict, accept_old=True)

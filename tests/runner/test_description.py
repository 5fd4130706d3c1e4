"""The description of a run, with what made it."""

from __future__ import annotations

import json

import pytest

import belated
from belated._util.version import stamp
from belated.runner import Run
from belated.runner._experiment import check_description

WORLD, ALGORITHM, LAW = belated.RiverSwim(), belated.DelayedPSVI(), belated.Poisson(3)


@pytest.mark.parametrize("every", [1, 7])
def test_a_run_describes_itself(every: int) -> None:
    run = Run(WORLD, ALGORITHM, LAW, 50, 3, every)
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
    about = Run(WORLD, ALGORITHM, LAW, 50, 3).describe()
    kept = json.loads(json.dumps(about))
    check_description("the file", kept, about)
    for name, value in {"seed": 4, "record_every": 2, "agent": None}.items():
        with pytest.raises(belated.InvalidInputError, match=f"^the file has rows of other settings: {name} was "):
            check_description("the file", {**kept, name: value}, about)
    with pytest.raises(belated.InvalidInputError, match=r"^the file was made by belated of an unknown version"):
        check_description("the file", {**kept, "made_by": None}, about)


def test_rows_of_strict_sums_do_not_mix_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Run(WORLD, ALGORITHM, LAW, 50, 3).describe()
    monkeypatch.setattr("belated.runner._experiment.STRICT", True)
    strict = Run(WORLD, ALGORITHM, LAW, 50, 3).describe()
    with pytest.raises(belated.InvalidInputError, match="other settings: strict was None, now it is True"):
        check_description("the file", fast, strict)

"""The file of winners: whole, of its kind, and with settings that can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import belated
from belated._util.files import BLANK_SEAL, seal
from belated.agents._wrapper import describe
from belated.runner._experiment import read_winners
from belated.runner._tuning import Outcome, Rung, Search, Space, load_winners, tune


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    spaces = {"psvi": Space(belated.DelayedPSVI(), {"scale": [0.1, 1.0]})}
    rungs = [Rung(10, [50], keep=1)]
    search = Search("river", belated.RiverSwim(states=3, horizon=4), belated.Poisson(3), spaces, rungs, range(10))
    return tune(search, folder=tmp_path_factory.mktemp("search"), progress=False)


def test_the_file_can_be_read_by_people_and_by_programs(tmp_path: Path, outcome: Outcome) -> None:
    outcome.save(tmp_path)
    file = tmp_path / "winners.json"
    assert load_winners(file) == outcome.winners
    assert read_winners(file).settings == outcome.specifications == {"psvi": describe(outcome.winners["psvi"])}
    assert len(file.read_text().splitlines()) > 20


def test_a_damaged_winners_file_is_refused(tmp_path: Path, outcome: Outcome) -> None:
    outcome.save(tmp_path)
    file = tmp_path / "winners.json"
    whole = file.read_bytes()
    content = json.loads(whole)
    changed: list[dict[str, object]] = [
        {"format": "other"},
        {"version": 2},
        {"winners": {}},
        {"winners": ["psvi"]},
        {"tuning_seeds": None},
        {"tuning_seeds": [[]]},
    ]
    damaged = [
        whole[: len(whole) // 2],
        b"",
        b"\xff\xfe",
        b"[]",
        *(seal(json.dumps({**content, **changes, "digest": BLANK_SEAL}).encode()) for changes in changed),
        whole.replace(b"0", b"1", 1),
    ]
    for each in damaged:
        file.write_bytes(each)
        with pytest.raises(belated.DamagedFileError, match="winners"):
            load_winners(file)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "psvi", "scale": -1.0}, "scale must be a finite number >= 0, got -1.0"),
        ({"algorithm": "psvi", "speed": 1.0}, "psvi has no setting 'speed'"),
        ({"algorithm": "psiv"}, "did you mean 'psvi'"),
        ({"algorithm": "fixed"}, "actions"),
        ("psvi", "a mapping with the field 'algorithm'"),
    ],
)
def test_unusable_winners_are_refused(tmp_path: Path, outcome: Outcome, settings: object, message: str) -> None:
    outcome.save(tmp_path)
    file = tmp_path / "winners.json"
    content = json.loads(file.read_text())
    file.write_bytes(seal(json.dumps({**content, "winners": {"psvi": settings}, "digest": BLANK_SEAL}).encode()))
    with pytest.raises(belated.InvalidInputError, match=message):
        load_winners(file)


def test_a_missing_winners_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*winners\.json"):
        load_winners(tmp_path / "winners.json")


def test_winners_import_nothing(tmp_path: Path, outcome: Outcome) -> None:
    outcome.save(tmp_path)
    file, marker = tmp_path / "winners.json", tmp_path / "marker"
    content, name = json.loads(file.read_text()), "subprocess:getoutput"
    settings = {"algorithm": name, "cmd": f"touch {marker}"}
    file.write_bytes(seal(json.dumps({**content, "winners": {"psvi": settings}, "digest": BLANK_SEAL}).encode()))
    with pytest.raises(belated.InvalidInputError, match="'subprocess:getoutput' is neither built-in nor from a plugin"):
        load_winners(file)
    with pytest.raises(belated.InvalidInputError, match="must be an algorithm"):
        load_winners(file, classes=[name])
    assert not marker.exists()

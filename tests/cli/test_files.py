import io
from pathlib import Path

import pytest
from rich.console import Console

import belated
from belated._cli.files import describe_file


def shown(path: Path) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(describe_file(path))
    return out.getvalue()


def test_rows_are_told_with_what_they_depend_on(tmp_path: Path) -> None:
    agents = {"random": belated.RandomPolicy()}
    world = belated.RiverSwim(states=3)
    belated.run(world, agents, belated.Constant(2), episodes=10, seeds=1, folder=tmp_path, progress=False)
    text = shown(next(tmp_path.rglob("*.parquet")))
    assert "rows of one run" in text
    assert "distribution = constant, value = 2" in text
    assert "7 of 10 trajectories" in text


def test_an_agent_is_told_with_its_memory(tmp_path: Path) -> None:
    belated.save_agent(tmp_path / "a.npz", belated.DelayedPSVI().start(belated.RiverSwim(states=3, horizon=4).problem))
    text = shown(tmp_path / "a.npz")
    assert "3 states, 2 actions, 6 features, 4 steps" in text
    assert "not saved" in text
    assert "4 × 6 × 6" in text


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(belated.InvalidInputError, match=r"must be a \.parquet file"):
        describe_file(tmp_path / "notes.txt")

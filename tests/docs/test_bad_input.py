"""Every row of the table of refused input is carried out: the error and its words must be as written."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import belated
import belated.gymnasium
from belated import agents, delays, environments, evaluation, features
from belated._kernels.streams import stream
from belated._util.files import sealed_archive
from belated.runner import Store

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bad-input.md"
ROW = re.compile(r"^\| (?P<entry>.+?) \| `(?P<given>.+?)` \| `(?P<error>\w+)` \| `(?P<message>.+)` \|$")


def rows() -> list[dict[str, str]]:
    """Return the rows of all tables of the page, headings left out."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    tables = [line for line in lines if line.startswith("|") and not line.startswith(("| entry point", "|---"))]
    found = []
    for line in tables:
        match = ROW.match(line)
        assert match, f"this row of {PAGE.name} is not of the form entry, `given`, `error`, `message`: {line}"
        found.append(match.groupdict())
    return found


class Names:
    """What the expressions of the page may use: the public names, and what its introduction lists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.river = belated.RiverSwim(states=3, horizon=4)
        self.agent = belated.DelayedPSVI().start(self.river.problem)
        self.rng = np.random.default_rng(0)
        self.kept = self.play(folder=folder / "kept", episodes=2)
        self._write_agents()
        self._write_tables()

    def experiment(self, **changes: Any) -> belated.Experiment:
        valid: dict[str, Any] = {
            "name": "demo",
            "environments": self.river,
            "agents": {"random": belated.RandomPolicy()},
            "delays": belated.Constant(1),
            "episodes": 3,
            "seeds": 1,
        }
        return belated.Experiment(**{**valid, **changes})

    def specification(self, **changes: Any) -> dict[str, Any]:
        valid: dict[str, Any] = {
            "name": "demo",
            "environments": {"river": {"environment": "riverswim"}},
            "agents": {"random": {"algorithm": "random"}},
            "delays": {"late": {"distribution": "constant", "value": 1}},
            "episodes": 3,
            "seeds": 1,
        }
        return {**valid, **changes}

    def play(self, **changes: Any) -> belated.Results:
        given: dict[str, Any] = {
            "environment": self.river,
            "agents": {"random": belated.RandomPolicy()},
            "delay": [belated.Constant(1), belated.Constant(2)],
            "episodes": 3,
            "seeds": 1,
            "jobs": 1,
            "progress": False,
            **changes,
        }
        return belated.run(**given)

    def play_experiment(self, **changes: Any) -> belated.Results:
        return belated.run_experiment(self.experiment(), progress=False, **changes)

    def feedback(self, **changes: Any) -> belated.Feedback:
        valid: dict[str, Any] = {"states": [0] * 5, "actions": [0] * 4, "rewards": [0.0] * 4}
        return belated.Feedback(0, belated.Trajectory(**{**valid, **changes}))

    def _write_agents(self) -> None:
        whole = self.folder / "agent.npz"
        belated.save_agent(whole, self.agent)
        (self.folder / "truncated.npz").write_bytes(whole.read_bytes()[:300])
        foreign = {"header": np.frombuffer(b'{"format": "other"}', np.uint8)}
        (self.folder / "foreign.npz").write_bytes(sealed_archive(foreign))
        with np.load(whole) as archive:
            arrays = dict(archive)
        for name, changes in {
            "newer.npz": {"version": 99},
            "unknown.npz": {"settings": {"algorithm": "pvsi"}},
        }.items():
            header = json.loads(arrays["header"].tobytes()) | changes
            entries: dict[str, Any] = {**arrays, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
            (self.folder / name).write_bytes(sealed_archive(entries))

    def _write_tables(self) -> None:
        (self.folder / "delays.csv").write_text("days,note\n3,a\n0.5,b\n")
        (self.folder / "damaged.parquet").write_bytes(b"PAR1 and then nothing")
        (self.folder / "not.toml").write_text("episodes = = 3\n")
        run = self.experiment(name="damaged").runs()[0]
        path = Store(self.folder).path(run)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"PAR1 and then nothing")

    def all(self) -> dict[str, Any]:
        names = {name: getattr(belated, name) for name in belated.__all__}
        for module in (agents, delays, environments, evaluation, features, belated.gymnasium):
            names |= {name: getattr(module, name) for name in module.__all__}
        own = ("river", "agent", "rng", "kept", "experiment", "specification", "play", "play_experiment", "feedback")
        names |= {name: getattr(self, name) for name in own}
        return {**names, "np": np, "stream": stream, "FOLDER": self.folder}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    found = Names(tmp_path_factory.mktemp("bad-input")).all()
    gc.freeze()  # or each collection below would walk through all that the tests before have compiled
    yield found
    gc.unfreeze()


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row["given"]))
def test_the_table_tells_the_truth(row: dict[str, str], names: dict[str, Any]) -> None:
    with pytest.raises(Exception) as caught:
        eval(row["given"], dict(names))
    said = str(caught.value).replace(str(names["FOLDER"]), "FOLDER")
    assert caught.type.__name__ == row["error"]
    told, cut, _ = row["message"].partition("…")
    assert said.startswith(told) if cut else said == told
    if "FOLDER" in row["given"]:
        del caught
        gc.collect()  # a file that was refused must not stay open: pytest would turn the warning into an error


def test_every_public_entry_point_has_a_row() -> None:
    """Each public class or function that takes arguments of the user occurs in some row."""
    given = " ".join(row["entry"] + " " + row["given"] for row in rows())
    exempt = {
        "AGENTS",  # a table
        "Agent",  # protocols and base classes
        "Algorithm",
        "DelayDistribution",
        "Environment",
        "Policy",
        "Problem",
        "RandomPolicy",  # takes no settings
        "SparseRows",  # checked where they are used
        "SparseVector",
        "TablePolicy",
        "Feedback",
        *(name for name in belated.__all__ if name.endswith("Error")),
    }
    assert [name for name in belated.__all__ if name not in exempt and not re.search(rf"\b{name}\b", given)] == []

"""Peers in their environments, with a fake environment and fake scripts."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from belated_studies import peer_environments
from belated_studies.peer_environments import Peer, PeerError, cache_folder, install, run_script

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake environment is a link to this interpreter")


def fake(home: Path, body: str = "", imports: Path | None = None) -> Peer:
    """Return a peer whose environment is this interpreter and whose script is `body`."""
    peer = Peer(name="fake", script=home / "use_fake.py", requirements=("fake==1.0",), imports=imports)
    peer.script.write_text(body, encoding="utf-8")
    python = peer.python(home)
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return peer


def test_the_last_line_is_the_answer(tmp_path: Path) -> None:
    body = "import json, sys; print('noise'); print(json.dumps({'given': open(sys.argv[1]).read()}))"
    (tmp_path / "data").write_text("all", encoding="utf-8")
    assert run_script(fake(tmp_path, body), tmp_path, tmp_path / "data") == {"given": "all"}


@pytest.mark.parametrize("allowed", [False, True])
def test_a_script_imports_what_it_may_and_has_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    beside, home = tmp_path / "beside", tmp_path / "home"
    beside.mkdir()
    home.mkdir()
    (beside / "neighbour.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(beside))  # what the caller may import is not the script's
    body = (
        "import os, importlib.util as found\n"
        "print([int(found.find_spec('neighbour') is not None), int(os.environ['OMP_NUM_THREADS'])])"
    )
    peer = fake(home, body, beside if allowed else None)
    assert run_script(peer, home, tmp_path) == [int(allowed), 1]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise RuntimeError('it broke')", "RuntimeError: it broke"),
        ("import belated_peer_that_is_not_there", "No module named 'belated_peer_that_is_not_there'"),
        ("print('nothing')", "use_fake.py printed no figures"),
        ("pass", "use_fake.py printed no figures"),
        ("import sys; sys.exit(3)", "exit code 3"),
        ("import time; time.sleep(60)", "timed out after 2 seconds"),
        ("import sys; sys.stderr.write('ERROR: no wheel\\nhint: see the manual\\n'); sys.exit(1)", "ERROR: no wheel"),
    ],
)
def test_a_script_that_fails_says_why(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(PeerError, match=reason):
        run_script(fake(tmp_path, body), tmp_path, tmp_path, timeout=2)


def test_an_installation_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def call(command: list[str]) -> str:
        calls.append(command)
        if "pip" in command and len(calls) < 3:
            raise PeerError("ERROR: No matching distribution found for fake==1.0")
        Path(command[-1]).mkdir(parents=True, exist_ok=True)
        return ""

    monkeypatch.setattr(peer_environments, "call", call)
    monkeypatch.chdir(tmp_path)
    peer = Peer(name="fake", script=tmp_path, requirements=("fake==1.0",))
    with pytest.raises(PeerError, match="No matching distribution"):
        install(peer, tmp_path)
    assert not peer.folder(tmp_path).exists()
    assert not peer.ready(tmp_path)
    install(peer, tmp_path)
    assert peer.ready(tmp_path)
    assert calls[-1][-1] == "fake==1.0"


def test_other_versions_get_another_environment(tmp_path: Path) -> None:
    one = Peer(name="fake", script=tmp_path, requirements=("fake==1.0",))
    assert one.folder(tmp_path) == replace(one, script=tmp_path / "x").folder(tmp_path)
    assert one.folder(tmp_path) != replace(one, requirements=("fake==1.1",)).folder(tmp_path)


def test_they_live_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELATED_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path / "peers"

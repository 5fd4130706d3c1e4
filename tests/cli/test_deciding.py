"""The service and its log from the command line."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from commands import call, refused
from serving import CONTEXT, MODELS, ask, free_port, start


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models.toml").write_text(MODELS)
    return tmp_path


def test_what_was_acknowledged_survives_kill_9_and_sigterm_drains(folder: Path) -> None:
    known: dict[str, float] = {}
    for ending in (signal.SIGKILL, signal.SIGTERM):
        port = free_port()
        process = start(folder, port)
        for made in known:
            assert ask(port, f"/v1/decisions/{made}")["reward"] == 1.0
        for _ in range(20):
            made = ask(port, "/v1/models/ads/decide", CONTEXT)["id"]
            assert ask(port, "/v1/models/ads/feedback", {"id": made, "reward": 1.0})["status"] == "accepted"
            known[made] = 1.0
        process.send_signal(ending)
        assert process.wait(timeout=90) == (0 if ending == signal.SIGTERM else -signal.SIGKILL)
    verified = call("decisions", "verify", "--store", folder / "d.db", "--model", "ads")
    assert verified.exit_code == 0, verified.output
    exported = call("decisions", "export", "--store", folder / "d.db", "--model", "ads", folder / "log.parquet")
    assert "40 decisions" in exported.stdout


def test_another_address_needs_keys(folder: Path) -> None:
    message = refused(
        call(
            "serve",
            "--store",
            folder / "d.db",
            "--config",
            folder / "models.toml",
            "--host",
            "0.0.0.0",
            "--port",
            free_port(),
        )
    )
    assert "loopback" in message
    assert not (folder / "d.db").exists()


def test_a_bad_file_of_models_changes_nothing(folder: Path) -> None:
    (folder / "models.toml").write_text('[models.ads]\nactions = ["a"]\n')
    message = refused(call("serve", "--store", folder / "d.db", "--config", folder / "models.toml"))
    assert "models.ads" in message
    assert "silence" in message
    assert not (folder / "d.db").exists()


def test_a_new_key_is_shown_once_and_kept_as_a_hash(folder: Path) -> None:
    made = call("decisions", "new-key", "site", "--scope", "decide", "--scope", "feedback")
    assert made.exit_code == 0
    key = made.stderr.split()[-1]
    assert key not in made.stdout
    (folder / "keys.toml").write_text(made.stdout)
    from belated.service.keys import Keyring, load_keys

    ring = Keyring(load_keys(folder / "keys.toml"))
    assert ring.scopes(key) == {"decide", "feedback"}
    assert ring.scopes(key + "x") is None
    assert ring.scopes(None) is None


def test_an_unknown_model_is_named(folder: Path) -> None:
    from belated.decisions import SQLiteStore

    SQLiteStore(folder / "d.db").close()
    assert "'other'" in refused(call("decisions", "verify", "--store", folder / "d.db", "--model", "other"))

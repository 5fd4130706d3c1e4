"""The service and its log from the command line."""

from __future__ import annotations

import signal
import sqlite3
import time
from pathlib import Path

import polars as pl
import pytest
from commands import call, refused
from serving import CONTEXT, MODELS, ask, free_port, start

from belated.decisions import Entry, Model, ModelSettings, SQLiteStore
from belated.service._config import load_models


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


def test_an_import_makes_the_model_that_is_not_there_yet(folder: Path) -> None:
    log = pl.DataFrame({"item_id": ["a"], "context": ['{"x": 1, "y": 2}'], "click": [1.0]})
    log.write_parquet(folder / "log.parquet")
    given = ("decisions", "import", "--store", folder / "d.db", "--model", "ads", folder / "log.parquet")
    assert "'ads'" in refused(call(*given))
    made = call(*given, "--config", folder / "models.toml")
    assert "1 decisions were learned" in made.stdout
    found = call("decisions", "verify", "--store", folder / "d.db", "--model", "ads")
    assert found.exit_code == 0, found.output


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
    given = ("decisions", "new-key", "site", "--scope", "decide", "--scope", "feedback", "--keys", folder / "keys.toml")
    made = call(*given)
    assert made.exit_code == 0
    key = made.stdout.split()[-1]
    assert key not in (folder / "keys.toml").read_text()
    assert "not in" in refused(call(*given))
    from belated.service._keys import Keyring

    ring = Keyring(path=folder / "keys.toml")
    assert ring.scopes(key) == frozenset({"decide", "feedback"})
    assert ring.scopes(key + "x") is None
    assert ring.scopes(None) is None


def test_an_unknown_model_is_named(folder: Path) -> None:
    SQLiteStore(folder / "d.db").close()
    assert "'other'" in refused(call("decisions", "verify", "--store", folder / "d.db", "--model", "other"))


@pytest.fixture
def logged(folder: Path) -> list[Entry]:
    """A log of 60 decisions in which `b` pays."""
    from belated.service._config import load_models

    store = SQLiteStore(folder / "d.db", durable=False)
    model = Model("ads", load_models(folder / "models.toml")["ads"], store)
    for i in range(60):
        made = model.decide({"x": i / 60, "y": 1.0})
        model.feedback(made.id, float(made.action == "b"))
    entries = list(model.log())
    store.close()
    return entries


def test_a_policy_is_evaluated_on_the_log(folder: Path, logged: list[Entry]) -> None:
    where = ("--store", folder / "d.db", "--model", "ads")
    found = call("decisions", "evaluate", *where)
    assert found.exit_code == 0, found.output
    lines = {line.split()[0]: line.split()[1:] for line in found.stdout.splitlines() if line.strip()}
    weighted = [float(each.action == "b") / 3 / (each.probability or 1.0) for each in logged]
    assert lines["IPS"][0] == f"{sum(weighted) / 60:.4f}"
    assert lines["logged"][0] == f"{sum(each.reward or 0.0 for each in logged) / 60:.4f}"
    assert set(lines) >= {"IPS", "SNIPS", "DR"}
    always = call("decisions", "evaluate", *where, "--action", "b")
    assert "always b, on 60 decisions" in always.stdout
    assert next(line.split()[1] for line in always.stdout.splitlines() if "SNIPS" in line) == "1.0000"
    assert "'d'" in refused(call("decisions", "evaluate", *where, "--action", "d"))


def test_the_same_settings_would_have_done_what_was_done(folder: Path, logged: list[Entry]) -> None:
    where = ("--store", folder / "d.db", "--model", "ads", "--config", folder / "models.toml")
    found = call("decisions", "replay", *where, folder / "replay.parquet")
    assert found.exit_code == 0, found.output
    drawn = pl.read_parquet(folder / "replay.parquet")["probabilities"].to_list()
    assert drawn == [list(each.probabilities or ()) for each in logged]
    evaluated = call("decisions", "evaluate", *where)
    lines = {line.split()[0]: line.split()[1:] for line in evaluated.stdout.splitlines() if line.strip()}
    assert lines["IPS"] == lines["logged"]
    assert lines["SNIPS"][0] == lines["logged"][0]


def test_other_settings_would_have_done_something_else(folder: Path, logged: list[Entry]) -> None:
    (folder / "other.toml").write_text(MODELS + "floor = 1.0\n")
    where = ("--store", folder / "d.db", "--model", "ads")
    found = call("decisions", "replay", *where, "--config", folder / "other.toml", folder / "replay.parquet")
    assert "60 decisions" in found.stdout
    drawn = pl.read_parquet(folder / "replay.parquet")["probabilities"].to_list()
    assert drawn == [[pytest.approx(1 / 3)] * 3] * 60
    (folder / "none.toml").write_text(MODELS.replace("ads", "mail"))
    assert "'ads'" in refused(call("decisions", "evaluate", *where, "--config", folder / "none.toml"))


def test_verify_says_what_is_damaged_and_salvage_what_is_lost(folder: Path, logged: list[Entry]) -> None:
    where = ("--store", folder / "d.db", "--model", "ads")
    assert "no row was altered" in call("decisions", "verify", *where).stdout
    with sqlite3.connect(folder / "d.db") as connection:
        connection.execute("UPDATE decision SET probability = 0.5 WHERE number = 20")
    connection.close()
    found = call("decisions", "verify", *where)
    assert found.exit_code == 1
    assert "was altered" in found.stdout
    assert "was altered" in refused(call("decisions", "export", *where, folder / "log.parquet"))
    whole = call("decisions", "salvage", "--store", folder / "d.db", folder / "whole.db")
    assert "ads: 59 decisions and 59 events are in" in whole.stdout
    assert "ads: lost: 1 events of lost decisions" in whole.stdout
    assert call("decisions", "verify", "--store", folder / "whole.db", "--model", "ads").exit_code == 0
    (folder / "d.db").write_bytes((folder / "d.db").read_bytes()[:5000])
    torn = call("decisions", "verify", *where)
    assert torn.exit_code and not isinstance(torn.exception, sqlite3.Error)


def test_a_model_gets_another_encoding(folder: Path, logged: list[Entry]) -> None:
    (folder / "other.toml").write_text(MODELS.replace('["x", "y"]', '["x"]'))
    assert "belated decisions migrate" in refused(
        call("decisions", "import", "--store", folder / "d.db", "--model", "ads", folder / "none.parquet",
             "--config", folder / "other.toml")
    )  # fmt: skip
    given = ("decisions", "migrate", "--store", folder / "d.db", "--config", folder / "other.toml")
    made = call(*given, folder / "new.db")
    assert "ads: 60 decisions and 60 events are in" in made.stdout, made.output
    assert "does not exist yet" in refused(call(*given, folder / "new.db"))
    store = SQLiteStore(folder / "new.db")
    model = Model("ads", None, store)
    assert model.settings.encoding.features == ("x",)
    assert [entry.id for entry in model.log()] == [entry.id for entry in logged]
    store.close()


def test_decisions_are_erased_by_id_or_key(folder: Path, logged: list[Entry]) -> None:
    where = ("decisions", "erase", "--store", folder / "d.db", "--model", "ads")
    assert "--id, --key or --session" in refused(call(*where, "--unlearn"))
    assert call(*where, "--id", logged[0].id).exit_code == 2  # it must be said what becomes of what it taught
    assert "nobody" in refused(call(*where, "--key", "nobody", "--unlearn"))
    done = call(*where, "--id", logged[0].id, "--id", logged[1].id, "--unlearn")
    assert "2 decisions were erased; what was learned is removed" in done.stdout
    assert "which was forgotten" in refused(call(*where, "--id", logged[0].id, "--keep-learned"))
    assert call("decisions", "verify", "--store", folder / "d.db", "--model", "ads").exit_code == 0


def test_a_session_is_erased_by_its_name(folder: Path) -> None:
    table = {"horizon": 3, "actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}, "agent": "greedy"}
    store = SQLiteStore(folder / "visits.db", durable=False)
    model = Model("visits", ModelSettings.from_table(table), store)
    for name in ("one", "two"):
        for _ in range(2):
            model.decide({"x": 1.0}, session=name)
    store.close()
    where = ("--store", folder / "visits.db", "--model", "visits")
    assert "which never existed" in refused(call("decisions", "erase", *where, "--session", "three", "--unlearn"))
    done = call("decisions", "erase", *where, "--session", "one", "--unlearn")
    assert "2 decisions were erased; what was learned is removed" in done.stdout
    assert "which was forgotten" in refused(call("decisions", "erase", *where, "--session", "one", "--unlearn"))
    assert call("decisions", "verify", *where).exit_code == 0


def test_an_import_says_why_rows_are_left_out(folder: Path, logged: list[Entry]) -> None:
    where = ("--store", folder / "d.db", "--model", "ads", folder / "log.parquet")
    assert call("decisions", "export", *where).exit_code == 0
    again = call("decisions", "import", *where)
    assert "0 decisions were learned" in again.stdout
    assert "60 were skipped: the store already has decisions with these ids" in again.stdout


def test_a_log_that_a_wrong_clock_has_carried_ahead_is_set_back(folder: Path) -> None:
    settings = load_models(folder / "models.toml")["ads"]
    model = Model("ads", settings, SQLiteStore(folder / "d.db"), clock=lambda: time.time() + 86_400.0)
    model.decide(CONTEXT["context"])
    model.store.close()
    given = ("decisions", "repair-clock", "--store", folder / "d.db", "--model", "ads")
    repaired = " ".join(call(*given).stdout.split())
    assert repaired.startswith("the log of ads was 86") and repaired.endswith("2 rows correct that")
    assert "is not ahead of the clock" in call(*given).stdout
    model = Model("ads", None, SQLiteStore(folder / "d.db"))
    assert model.decide(CONTEXT["context"]).id and model.verify() == []
    model.store.close()


SHOP = """[models.shop]
actions = ["a", "b"]
categories = ["page"]
hashed = 4
horizon = 2
floor = 0.5
silence = {kind = "unknown"}
"""


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Return a folder with the log of 40 sessions of two steps, in which b pays."""
    (tmp_path / "models.toml").write_text(SHOP)
    store = SQLiteStore(tmp_path / "d.db")
    model = Model("shop", load_models(tmp_path / "models.toml")["shop"], store)
    for number in range(40):
        if number % 10 == 5:
            model.plan()
        for page in ("first", "second"):
            made = model.decide({"page": page}, session=str(number))
            model.feedback(made.id, float(made.action == "b"))
        model.end(str(number), terminal=True)
    store.close()
    return tmp_path


def test_policies_are_evaluated_on_a_log_of_sessions(visits: Path) -> None:
    where = ("--store", visits / "d.db", "--model", "shop")
    found = call("decisions", "evaluate", *where)
    assert found.exit_code == 0, found.output
    lines = {line.split()[0]: line.split()[1:] for line in found.stdout.splitlines() if line.strip()}
    assert set(lines) >= {"PDIS", "WPDIS", "DR", "logged"}
    assert "uniform actions, on 40 sessions" in found.stdout
    always = call("decisions", "evaluate", *where, "--action", "b")
    assert next(line.split()[1] for line in always.stdout.splitlines() if "WPDIS" in line) == "2.0000"
    assert "no interval for" in always.stdout
    same = call("decisions", "evaluate", *where, "--agent", "auto-psvi")
    assert "effective sample size: 40 sessions; the largest importance weight is 1.0" in same.stdout
    settings = call("decisions", "evaluate", *where, "--config", visits / "models.toml")
    assert "effective sample size: 40 sessions" in settings.stdout
    both = ("--agent", "greedy", "--action", "b")
    assert "each is a policy" in refused(call("decisions", "evaluate", *where, *both))


def test_an_agent_is_fed_from_a_log_of_sessions(visits: Path) -> None:
    where = ("--store", visits / "d.db", "--model", "shop")
    logged = list(Model("shop", None, SQLiteStore(visits / "d.db", read_only=True)).log())
    found = call("decisions", "replay", *where, "--agent", "auto-psvi", visits / "own.parquet")
    assert found.exit_code == 0, found.output
    assert "80 steps of 40 sessions" in found.stdout
    own = pl.read_parquet(visits / "own.parquet").sort("timestamp", "id")
    drawn = dict(zip(own["id"], own["probabilities"].to_list(), strict=True))
    assert drawn == {each.id: list(each.probabilities or ()) for each in logged}
    other = call("decisions", "replay", *where, "--agent", "greedy", visits / "other.parquet")
    assert "it would have taken" in other.stdout
    assert "either --config or --agent" in refused(call("decisions", "replay", *where, visits / "none.parquet"))
    assert "'auto-psv'" in refused(call("decisions", "replay", *where, "--agent", "auto-psv", visits / "x.parquet"))


def test_an_agent_is_for_sessions(folder: Path, logged: list[Entry]) -> None:
    where = ("--store", folder / "d.db", "--model", "ads", "--agent", "greedy")
    assert "--agent is for models of sessions" in refused(call("decisions", "evaluate", *where))
    assert "--agent is for models of sessions" in refused(call("decisions", "replay", *where, folder / "x.parquet"))

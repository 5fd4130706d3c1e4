"""`belated serve` and `belated decisions`: run the decision service, and maintain its log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from belated._cli.shared import say
from belated.errors import InvalidInputError

if TYPE_CHECKING:
    from belated.decisions import Estimate, Model, ModelSettings
    from belated.decisions._copying import Copied
    from belated.decisions._evaluation import Policy
    from belated.decisions._store.base import Store

Where = Annotated[str, typer.Option("--store", help="SQLite file, or a URL such as postgresql://host/name.")]
Which = Annotated[str, typer.Option("--model", help="Name of the model.")]


def serve_command(
    store: Where = "decisions.db",
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with a table \\[models.NAME] for each model; by default those in the store."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; all but loopback addresses need --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8080,
    keys: Annotated[Path | None, typer.Option(help="TOML file with keys, from belated decisions new-key.")] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name under which clients, or a proxy, reach this service; may be repeated."),
    ] = None,
) -> None:
    """Serve decisions over HTTP, and learn from rewards whenever they arrive."""
    import os

    from belated._cli.shared import needs

    # The matrices are small: BLAS threads would only wait for each other, and for other requests.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with needs("service"):
        from belated.service._serve import serve
    serve(
        store,
        config,
        host=host,
        port=port,
        keys=keys,
        hosts=allow_host or (),
        tell=lambda text: say(Console(stderr=True), text),
    )


decisions = typer.Typer(help="Maintain the log of the decision service.", no_args_is_help=True)


def open_any(store: str, *, read_only: bool) -> Store:
    """Open a store; a SQLite file opened read-only may be in use."""
    from belated.decisions import SQLiteStore
    from belated.decisions._store import open_store

    return SQLiteStore(store, read_only=True) if read_only and "://" not in store else open_store(store)


def open_model(store: str, model: str, *, read_only: bool, config: Path | None = None) -> Model:
    """Open one model of a store; with `config` it is created if it is missing."""
    from belated.decisions import Model

    settings = None if config is None else other_settings(config, model)
    opened = open_any(store, read_only=read_only)
    try:
        return Model(model, settings, opened)
    except BaseException:
        opened.close()
        raise


@decisions.command("export")
def export_command(
    store: Where, model: Which, out: Annotated[Path, typer.Argument(help="Parquet file to write.")]
) -> None:
    """Write every decision to Parquet, in the columns of the Open Bandit convention."""
    from belated.decisions._transfer import export_log

    count = export_log(open_model(store, model, read_only=True), out)
    say(Console(), f"{count} decisions are in {out}; click is the reward that counts, reported the reported one")


@decisions.command("import")
def import_command(
    store: Where,
    model: Which,
    file: Annotated[Path, typer.Argument(help="Parquet file to read.")],
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with the model, as \\[models.NAME], if the store does not have it yet."),
    ] = None,
) -> None:
    """Learn from past decisions in a Parquet file: item_id, context (JSON), and click, propensity_score if known."""
    from belated.decisions._transfer import import_log

    opened = open_model(store, model, read_only=False, config=config)
    done = import_log(opened, file)
    opened.store.close()
    say(Console(), f"{done.decisions} decisions were learned from {file}, {done.rewarded} of them with a reward")
    if done.known:
        say(
            Console(),
            f"{done.known} were skipped: the store already has decisions with these ids, of {model} or another model",
        )
    if done.repeated:
        say(Console(), f"{done.repeated} were skipped: their ids occur earlier in the file")


@decisions.command("backup")
def backup_command(store: Where, out: Annotated[Path, typer.Argument(help="File to write.")]) -> None:
    """Copy a SQLite store, even while the service runs."""
    from belated.decisions._transfer import back_up

    back_up(store, out)
    say(Console(), f"the backup is {out}")


@decisions.command("verify")
def verify_command(store: Where, model: Which) -> None:
    """Check that the database is intact, that no row was altered, and that state and plans follow from the log."""
    from belated.decisions import Model

    opened = open_any(store, read_only=True)
    try:
        found = opened.check(model) or Model(model, None, opened).recompute()
    finally:
        opened.close()
    for sentence in found:
        say(Console(), sentence)
    if found:
        raise typer.Exit(1)
    say(Console(), f"{model} is intact: no row was altered, and its state follows from the log")


To = Annotated[str, typer.Argument(help="The new store: a file that does not exist yet, or the URL of an empty one.")]


@decisions.command("salvage")
def salvage_command(store: Where, to: To) -> None:
    """Copy the intact part of a damaged SQLite store to a new one, and report the rest."""
    from belated.decisions._copying import salvage

    report(salvage(store, to), to, "lost")


@decisions.command("migrate")
def migrate_command(
    store: Where,
    to: To,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with new settings of models, as \\[models.NAME].")
    ] = None,
) -> None:
    """Copy a store elsewhere, or re-encode its models into a new store. Stop the service first."""
    from belated.decisions._copying import migrate
    from belated.service._config import load_models

    report(migrate(store, to, {} if config is None else load_models(config)), to, "not copied")


def report(copied: list[Copied], to: str, word: str) -> None:
    """Print what was copied, and what was not."""
    for each in copied:
        say(Console(), f"{each.model}: {each.decisions} decisions and {each.events} events are in {to}")
        for note in each.notes:
            say(Console(), f"{each.model}: {note}" if note.startswith("not ") else f"{each.model}: {word}: {note}")


Other = Annotated[
    Path | None,
    typer.Option(help="TOML file with other settings of the model, as \\[models.NAME], to replay the log under."),
]


Agent = Annotated[
    str | None, typer.Option(help="For a model of sessions: the name of another agent, which is trained on the log.")
]


@decisions.command("evaluate")
def evaluate_command(
    store: Where,
    model: Which,
    config: Other = None,
    action: Annotated[str | None, typer.Option(help="Evaluate the policy that always chooses this action.")] = None,
    agent: Agent = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
) -> None:
    """Estimate what another policy would have earned: other settings, one fixed action, or uniform actions."""
    from belated.decisions._evaluation import always, assess, evaluate, uniform, usable
    from belated.decisions._replay import replay

    opened = open_model(store, model, read_only=True)
    if sum(each is not None for each in (config, action, agent)) > 1:
        raise InvalidInputError("give only one of --config, --action and --agent: each is a policy")
    if action is not None:
        from belated._util.validate import choice

        choice("--action", action, opened.settings.actions or [action])
    if opened.settings.sessions is not None:
        other = None if config is None and agent is None else others(opened, config, agent)
        name = f"the settings of {config}" if config else f"the agent {agent}" if agent else policy_name(action)
        show_sessions(opened, other, uniform if action is None else always(action), name, level)
        return
    if agent is not None:
        raise InvalidInputError(f"--agent is for models of sessions, and {model} has none")
    if config is not None:
        pairs = list(replay(opened, other_settings(config, model)))
        log = usable(entry for entry, _ in pairs)
        drawn = {entry.id: probabilities for entry, probabilities in pairs}
        found = assess(log, [drawn[entry.id] for entry in log.entries], opened.settings, level=level)
        name = f"the settings of {config}"
    else:
        policy = uniform if action is None else always(action)
        found = evaluate(opened.log(), policy, opened.settings, level=level)
        name = policy_name(action)
    show_estimates(f"{name}, on {found.decisions} decisions", "mean reward", (*found.estimates, found.logged), level)
    worth = f"effective sample size: {found.effective:.0f} decisions"
    possible = "" if math.isnan(found.possible) else f" (the maximum possible is {found.possible:.1f})"
    say(Console(), f"{worth}; the largest importance weight is {found.largest:.1f}{possible}")
    if found.young:
        say(Console(), f"left out: {found.young} decisions as young as those whose rewards may still arrive")
    if found.in_flight:
        say(Console(), f"{found.in_flight} decisions in flight count with the ages that they have completed")
    if found.lost:
        say(Console(), f"{found.lost} rewards never arrived; others of the same action are weighted up")
    say_learned(found.estimates, learned=found.learned)
    show_reasons((*found.estimates, found.logged))


def policy_name(action: str | None) -> str:
    return "uniform actions" if action is None else f"always {action}"


def show_estimates(title: str, measure: str, estimates: Sequence[Estimate], level: float) -> None:
    table = Table(title=title, box=None, title_justify="left")
    for column in ("estimate", measure, "standard error", f"{100 * level:g} % interval"):
        table.add_column(column, justify="left" if column == "estimate" else "right")
    for each in estimates:
        numbers = (f"{each.error:.4f}", f"{each.low:.4f} to {each.high:.4f}") if not each.reason else ("–", "none")
        table.add_row(each.method, f"{each.value:.4f}", *numbers)
    Console().print(table)


def say_learned(estimates: Sequence[Estimate], *, learned: bool) -> None:
    """Say what intervals from a log that learned are of."""
    if learned and not all(each.reason for each in estimates):
        say(Console(), "the log has learned: estimates with an interval are of what comes after its first third")


def show_reasons(estimates: Sequence[Estimate]) -> None:
    """Print why estimates have no interval."""
    reasons: dict[str, list[str]] = {}
    for each in estimates:
        if each.reason:
            reasons.setdefault(each.reason, []).append(each.method)
    for reason, methods in reasons.items():
        say(Console(), f"no interval for {', '.join(methods)}: {reason}")


def show_sessions(model: Model, other: ModelSettings | None, policy: Policy, name: str, level: float) -> None:
    """Print the estimated return per session of other settings or, if there are none, of a policy."""
    from belated.decisions._replay import replay_sessions
    from belated.decisions._session_evaluation import (
        assess_sessions,
        evaluate_sessions,
        sessions_in,
        usable_sessions,
    )

    if other is None:
        found = evaluate_sessions(sessions_in(model), policy, model.settings, level=level)
    else:
        drawn = {session.session: rows for session, rows in replay_sessions(model, other)}
        log = usable_sessions(sessions_in(model))
        found = assess_sessions(log, [drawn[each.session] for each in log.sessions], model.settings, level=level)
    estimates = (*found.estimates, found.logged)
    show_estimates(f"{name}, on {found.sessions} sessions", "mean return", estimates, level)
    worth = f"effective sample size: {found.effective:.0f} sessions"
    say(Console(), f"{worth}; the largest importance weight is {found.largest:.1f}")
    if found.young:
        say(Console(), f"left out: {found.young} sessions that are open, or as young as those awaiting rewards")
    if found.lost:
        say(Console(), f"left out: {found.lost} sessions with rewards that never arrived")
    say_learned(found.estimates, learned=found.learned)
    show_reasons(estimates)


def others(model: Model, config: Path | None, agent: str | None) -> ModelSettings:
    """Return the settings of a file, or those of the model with another agent."""
    from dataclasses import replace

    if config is not None:
        return other_settings(config, model.name)
    assert model.settings.sessions is not None
    assert agent is not None
    return replace(model.settings, sessions=replace(model.settings.sessions, agent=agent))


@decisions.command("replay")
def replay_command(
    store: Where,
    model: Which,
    out: Annotated[Path, typer.Argument(help="Parquet file to write.")],
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the other settings of the model, as \\[models.NAME].")
    ] = None,
    agent: Agent = None,
) -> None:
    """Replay the log under other settings, or with another agent, and write the probabilities it would have used."""
    from belated.decisions._replay import replay, replay_sessions
    from belated.decisions._transfer import write_replay

    if (config is None) == (agent is None):
        raise InvalidInputError("give either --config or --agent, to replay the log under")
    opened = open_model(store, model, read_only=True)
    if opened.settings.sessions is None:
        if config is None:
            raise InvalidInputError(f"--agent is for models of sessions, and {model} has none")
        count = write_replay(replay(opened, other_settings(config, model)), out)
        say(Console(), f"{count} decisions are in {out}")
        return
    sessions = list(replay_sessions(opened, others(opened, config, agent)))
    pairs = [pair for session, rows in sessions for pair in zip(session.steps, rows, strict=True)]
    count = write_replay(pairs, out)
    likely = sum(float(row[tuple(entry.actions).index(entry.action)]) for entry, row in pairs)
    say(Console(), f"{count} steps of {len(sessions)} sessions are in {out}")
    if count:
        say(Console(), f"it would have taken {100 * likely / count:.1f} % of the logged actions")


def other_settings(config: Path, model: str) -> ModelSettings:
    """Return the settings of one model in a file of models."""
    from belated._util.validate import choice
    from belated.service._config import load_models

    found = load_models(config)
    return found[choice(f"a model of {config}", model, found)]


@decisions.command("purge")
def purge_command(
    store: Where,
    model: Which,
    days: Annotated[
        float, typer.Option(help="Drop decisions older than this many days; what was learned stays.", min=0.0)
    ],
) -> None:
    """Drop old decisions with their contexts; their ids are answered with 410. Stop a service on SQLite first."""
    import time

    opened = open_model(store, model, read_only=False)
    count = opened.purge(time.time() - 86400.0 * days)
    opened.store.close()
    say(Console(), f"{count} decisions were dropped")


@decisions.command("erase")
def erase_command(
    store: Where,
    model: Which,
    keep_learned: Annotated[
        bool, typer.Option("--keep-learned/--unlearn", help="Whether what was learned stays or is removed.")
    ],
    id: Annotated[list[str] | None, typer.Option(help="Id of a decision; may be repeated.")] = None,  # noqa: A002
    key: Annotated[list[str] | None, typer.Option(help="Idempotency key of a decision; may be repeated.")] = None,
    session: Annotated[list[str] | None, typer.Option(help="Session with all its steps; may be repeated.")] = None,
) -> None:
    """Erase decisions and their rewards. While a service runs on SQLite, use its DELETE request instead."""
    if not id and not key and not session:
        raise InvalidInputError("give --id, --key or --session: which decisions to erase")
    opened = open_model(store, model, read_only=False)
    try:
        count = opened.erase(id or (), keys=key or (), sessions=session or (), keep_learned=keep_learned)
    finally:
        opened.store.close()
    say(Console(), f"{count} decisions were erased; what was learned {'stays' if keep_learned else 'is removed'}")


@decisions.command("repair-clock")
def repair_clock_command(store: Where, model: Which) -> None:
    """Reset the time of a log to the clock, after a clock ran ahead. Stop the service first."""
    opened = open_model(store, model, read_only=False)
    ahead = max(0.0, opened.state.latest - opened.store.time())
    count = opened.repair_clock()
    opened.snapshot()
    opened.store.close()
    told = f"the log of {model} was {ahead:.0f} seconds ahead of the clock: {count} rows correct that"
    say(Console(), told if count else f"the log of {model} is not ahead of the clock")


@decisions.command("new-key")
def new_key_command(
    name: Annotated[str, typer.Argument(help="Name of the key's owner.")],
    scope: Annotated[list[str], typer.Option(help="decide, feedback, read or admin; may be repeated.")],
    keys: Annotated[Path, typer.Option(help="TOML file to add the key to; only its hash is stored.")],
) -> None:
    """Create a key, and show it once."""
    from belated.service._keys import add_key

    say(Console(), f"the key, shown only now: {add_key(keys, name, scope)}")

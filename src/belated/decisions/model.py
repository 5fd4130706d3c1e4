"""A model: named actions, JSON contexts and a durable log around the posterior and the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from belated.decisions.ids import Clock
from belated.decisions.operations import Operation
from belated.decisions.settings import ModelSettings
from belated.decisions.store.base import Store
from belated.decisions.store.rows import Row
from belated.decisions.values import Choice, Entry, Outcome, Status
from belated.errors import BelatedError


class Prepared:
    """Operations whose answers are known and whose rows wait to be stored. Nothing has changed yet."""

    rows: list[Row]
    results: list[Choice | Outcome | BelatedError]
    """One for each operation: an error is that of a decision that was refused."""


class Model:
    """Decides, and learns whenever a reward comes. Safe to call from several threads.

    A single call (`decide`, `feedback` and so on) is one commit. A service collects operations and has many of them
    done in one:

        prepared = model.prepare(operations)     # answers and rows; nothing has changed
        rows = store.append(prepared.rows)       # durable; may hold the rows of several models
        model.learn(rows)                        # folds what was stored into the posterior

    If the store refuses, drop `prepared`: nothing has happened. Whoever calls these three must be the only one who
    writes for this model; `with model.lock:` makes sure in one process. Decisions of one batch are drawn from the
    posterior before it.
    """

    def __init__(self, name: str, settings: ModelSettings | None, store: Store, *, clock: Clock = time.time) -> None:
        """Open a model, new or as the log says; `settings` None: as they were, else a new version if they differ."""
        raise NotImplementedError

    def prepare(self, operations: Sequence[Operation]) -> Prepared:
        """Return the answers to `operations`, and the rows to store before giving them."""
        raise NotImplementedError

    def learn(self, rows: Sequence[Row]) -> None:
        """Fold stored rows of this model into its state, in the order of the log."""
        raise NotImplementedError

    def run(self, operations: Sequence[Operation]) -> list[Choice | Outcome | BelatedError]:
        """Do `operations` in one commit."""
        raise NotImplementedError

    def decide(self, context: Mapping[str, Any], **options: Any) -> Choice:
        """Choose an action; the options are those of `Decide`."""
        raise NotImplementedError

    def decide_many(self, contexts: Sequence[Mapping[str, Any]], **options: Any) -> list[Choice]:
        """Choose an action for each context, in one commit; all or none."""
        raise NotImplementedError

    def feedback(self, id: str, reward: float, **options: Any) -> Outcome:  # noqa: A002
        """Report a reward; the options are those of `Reward`."""
        raise NotImplementedError

    def feedback_many(self, rewards: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Report many rewards in one commit, with an outcome for each."""
        raise NotImplementedError

    def record(self, context: Mapping[str, Any], action: str, reward: float | None = None, **options: Any) -> Choice:
        """Write down and learn a decision that somebody else made; the options are those of `Decide`."""
        raise NotImplementedError

    def activate(self, id: str) -> Outcome:  # noqa: A002
        """Let a decision made with `active=False` count from now on."""
        raise NotImplementedError

    def cancel(self, id: str) -> Outcome:  # noqa: A002
        """Take a decision back, and exactly what it taught."""
        raise NotImplementedError

    def lookup(self, id: str) -> Entry:  # noqa: A002
        """Return all that is known of a decision; `UnknownNameError` says whether it was forgotten or never existed."""
        raise NotImplementedError

    def tick(self, limit: int = 10_000) -> int:
        """End the windows that are due, at most about `limit`, and return how many did. Call it when traffic stops."""
        raise NotImplementedError

    def change(self, settings: ModelSettings) -> int:
        """Go on with other settings, for instance other actions; return their version.

        What would make the sums meaningless (encoding, forgetting) is refused: replay the log into a new model.
        """
        raise NotImplementedError

    def add_action(self, name: str, features: Mapping[str, Any] | None = None) -> None:
        """Offer another action from now on."""
        raise NotImplementedError

    def retire_action(self, name: str) -> None:
        """Offer an action no longer; rewards of its decisions still count."""
        raise NotImplementedError

    def snapshot(self) -> int:
        """Store the state, so that a restart need not read the whole log; return the place in the log."""
        raise NotImplementedError

    def verify(self) -> list[str]:
        """Compute the state again from the log and return how it differs from this one: nothing, if all is well."""
        raise NotImplementedError

    def purge(self, before: float) -> int:
        """Drop the decisions made before a time (seconds since 1970); what they taught stays. Return how many."""
        raise NotImplementedError

    def log(self) -> Iterator[Entry]:
        """Yield every decision as it stands now, oldest first: for export and evaluation."""
        raise NotImplementedError

    @property
    def counts(self) -> Mapping[Status, int]:
        """How many events ended as what, since the process started."""
        raise NotImplementedError

    def summary(self) -> dict[str, Any]:
        """Return figures for people and metrics: decisions by state, noise, weights, age of the oldest in flight."""
        raise NotImplementedError

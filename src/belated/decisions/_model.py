"""A model: named actions, JSON contexts and a durable log around the posterior and the ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from belated._util.validate import real, refuse
from belated.decisions._encoding import Table, check_text
from belated.decisions._engine import Engine, commit, entry_of
from belated.decisions._ids import Clock, new_id
from belated.decisions._intake import Batch, parks_young
from belated.decisions._ledger import History, Rules, standing
from belated.decisions._operations import Activate, Cancel, Decide, Reward
from belated.decisions._settings import MOST_ACTIONS, ModelSettings
from belated.decisions._store.base import Store
from belated.decisions._store.rows import DecisionRow, SettingsRow
from belated.decisions._values import Choice, Entry, Outcome, RepeatedChoice, State
from belated.errors import InvalidInputError, UnknownNameError
from belated.types import Floats

__all__ = ["Batch", "Model", "commit"]

#: What may not change while a model lives: the sums would no longer mean what they say.
_FIXED = ("encoding", "forgetting", "seed")


class Model(Engine):
    """Decides, and learns whenever a reward comes. Safe to call from several threads.

    A single call (`decide`, `feedback` and so on) is one commit. A service collects operations and has many of them
    done in one, of several models if it likes:

        batches = [model.prepare(operations), ...]   # answers and rows; nothing has changed
        commit(store, batches)                       # durable, and then learned
        batches[0].results                           # one for each operation

    If the store refuses, drop the batches: nothing has happened. From `prepare` to the end of `commit` nobody else
    may write for the model: hold `model.lock`. Decisions of one batch are drawn from the posterior before it.

    Parameters
    ----------
    name
        Of the model, within its store.
    settings
        A new version of them is written down if they differ from the latest; None: as they were.
    store
        Where the log is kept.
    clock
        Returns seconds since 1970.

    Examples
    --------
    >>> from belated.decisions import MemoryStore
    >>> table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
    >>> model = Model("ads", ModelSettings.from_table(table), MemoryStore())
    >>> choice = model.decide({"x": 0.3})
    >>> model.feedback(choice.id, 1.0).status, model.feedback(choice.id, 1.0).status
    (<Status.ACCEPTED: 'accepted'>, <Status.DUPLICATE: 'duplicate'>)
    """

    def __init__(self, name: str, settings: ModelSettings | None, store: Store, *, clock: Clock = time.time) -> None:
        check_text("the name of a model", name)
        versions = store.settings(name)
        if settings is None and not versions:
            raise UnknownNameError(f"model must be one of {store.models()}, got {name!r}")
        self._versions = {row.version: ModelSettings.from_table(json.loads(row.text)) for row in versions}
        if settings is not None and not versions:
            self._write_settings(store, SettingsRow(name, 1, clock(), settings.to_json()), settings)
        latest = max(self._versions)
        super().__init__(name, self._versions[latest], latest, store, clock)
        if settings is not None:
            self.change(settings)

    def rules(self, version: int) -> Rules:
        """Return the rules of a version of the settings; of 0, the latest."""
        if version > self.settings_version:  # another process has changed them
            self._reload()
        return self._rules[version or self.settings_version]

    def _reload(self) -> None:
        rows = self.store.settings(self.name)
        self._versions = {row.version: ModelSettings.from_table(json.loads(row.text)) for row in rows}
        self._adopt(self._versions[rows[-1].version], rows[-1].version)
        self._configure_posterior()

    def _write_settings(self, store: Store, row: SettingsRow, settings: ModelSettings) -> None:
        store.add_settings(row)
        self._versions[row.version] = settings

    def _adopt(self, settings: ModelSettings, version: int) -> None:
        super()._adopt(settings, version)
        self._rules = {number: each.rules for number, each in self._versions.items()}
        self._offer = settings.offer
        self._offer_text = json.dumps(list(self._offer), ensure_ascii=False)

    def _parks(self, id: str, now: float) -> bool:  # noqa: A002
        return parks_young(id, now)

    def _describe(self, given: Decide) -> bytes:
        body = [given.context, given.actions, given.active, given.size, given.chosen, given.probability, given.id]
        return _json("the request", body, _encode_sorted).encode()

    def _encode(self, given: Decide) -> tuple[Table, str, str]:
        offer, text = self._offer, self._offer_text
        if given.actions is not None:
            offer = self._offered(given.actions)
            text = _json("actions", given.actions if isinstance(given.actions, Mapping) else list(offer))
        if not offer:
            raise refuse("actions", given.actions, "given with the request, at least one")
        table = self.settings.encoding.table(given.context, offer)
        return table, _json("context", given.context), text

    def _offered(self, actions: Any) -> dict[str, Mapping[str, Any]]:
        """Return the actions of a request, with their features."""
        if isinstance(actions, str) or not isinstance(actions, Mapping | list | tuple) or not actions:
            raise refuse("actions", actions, "a list of names, or an object of names and features, not empty")
        if len(actions) > MOST_ACTIONS or len(set(map(str, actions))) < len(actions):
            raise refuse("actions", actions, f"at most {MOST_ACTIONS} different names")
        known, offered = self.settings.actions, {}
        for name in actions:
            if known and name not in self._offer:
                allowed = f"of those on offer ({', '.join(list(self._offer)[:20])})"
                raise refuse("each of actions", name, allowed)
            features = actions[name] if isinstance(actions, Mapping) else known.get(name, {})
            offered[name if known else check_text("each of actions", name)] = features
        return offered

    def _answer(self, row: DecisionRow, ranking: tuple[str, ...]) -> Choice:
        return Choice(row.id, ranking[0], row.probability, row.version, ranking, row.suggestion)

    def _answer_again(self, row: DecisionRow, ranking: tuple[str, ...]) -> Choice:
        return RepeatedChoice(*self._answer(row, ranking))

    def decide(self, context: Mapping[str, Any], **options: Any) -> Choice:
        """Choose an action; the options are those of `Decide`."""
        return self.decide_many([context], **options)[0]

    def decide_many(self, contexts: Sequence[Mapping[str, Any]], **options: Any) -> list[Choice]:
        """Choose an action for each context, in one commit; all or none."""
        results = self.run([Decide(context=context, **options) for context in contexts], all_or_none=True)
        return [result for result in results if isinstance(result, Choice)]

    def feedback(self, id: str, reward: float, **options: Any) -> Outcome:  # noqa: A002
        """Report a reward; the options are those of `Reward`."""
        return self._event(Reward(id=id, reward=reward, **options))

    def feedback_many(self, rewards: Sequence[Reward]) -> list[Outcome]:
        """Report many rewards in one commit, with an outcome for each."""
        return [result for result in self.run(rewards) if isinstance(result, Outcome)]

    def record(self, context: Mapping[str, Any], action: str, reward: float | None = None, **options: Any) -> Choice:
        """Write down and learn a decision that somebody else made, in one commit; the options are those of `Decide`."""
        if reward is None:
            return self.decide(context, chosen=action, **options)
        real("reward", reward)
        with self.lock:
            if options.get("key") is not None:  # it may have been recorded, under another id
                choice = self.decide(context, chosen=action, **options)
                self.feedback(choice.id, reward)
                return choice
            name = options.pop("id", None)
            name = self.new_id() if name is None else name
            decision = Decide(context=context, chosen=action, id=name, **options)
            made: Choice = self.run([decision, Reward(name, reward)], all_or_none=True)[0]
            self.tick()  # its window may be over long since
            return made

    def new_id(self) -> str:
        """Return an id for a decision to be made now, for a caller who must know it before."""
        return new_id(max(self._clock(), self._fold.latest))

    def activate(self, id: str) -> Outcome:  # noqa: A002
        """Let a decision made with `active=False` count from now on."""
        return self._event(Activate(id=id))

    def cancel(self, id: str) -> Outcome:  # noqa: A002
        """Take a decision back, and exactly what it taught."""
        return self._event(Cancel(id=id))

    def _event(self, given: Reward | Activate | Cancel) -> Outcome:
        result = self.run([given])[0]
        assert isinstance(result, Outcome)
        return result

    def change(self, settings: ModelSettings) -> int:
        """Go on with other settings, for instance other actions; return their version.

        What would make the sums meaningless (encoding, forgetting) is refused: replay the log into a new model.
        """
        with self.lock:
            if settings.to_json() == self.settings.to_json():
                return self.settings_version
            for name in _FIXED:
                if getattr(settings, name) != getattr(self.settings, name):
                    raise InvalidInputError(
                        f"{name} must stay as it is while a model lives, {getattr(self.settings, name)}, got "
                        f"{getattr(settings, name)}: start a model of another name, and replay the log into it"
                    )
            version = self.settings_version + 1
            self._write_settings(
                self.store, SettingsRow(self.name, version, self._clock(), settings.to_json()), settings
            )
            self._adopt(settings, version)
            self._configure_posterior()
            return version

    def add_action(self, name: str, features: Mapping[str, Any] | None = None) -> int:
        """Offer another action, or a retired one again; return the version of the settings."""
        with self.lock:
            return self.change(self.settings.with_action(name, features))

    def retire_action(self, name: str) -> int:
        """Offer an action no longer; rewards of its decisions still count. Return the version of the settings."""
        with self.lock:
            return self.change(self.settings.without_action(name))

    def snapshot(self) -> int:
        """Store the state, so that a restart need not read the whole log; return the place in the log."""
        with self.lock:
            self.store.save_snapshot(self._fold.snapshot(self._clock()))
            self._saved = self._fold.seq
            return self._saved

    def verify(self) -> list[str]:
        """Compute the state again from the log and return how it differs from this one: nothing, if all is well."""
        with self.lock:
            again = self._new_fold()
            base = [row for row in self.store.snapshots(self.name) if row.base]
            if base:
                again.restore(base[0])
            for row in self.store.log(self.name, again.seq, self._fold.seq):
                again.add(row)
            return self._fold.differences(again)

    def purge(self, before: float) -> int:
        """Drop the decisions made before a time (seconds since 1970); what they taught stays. Return how many.

        Decisions with an open window stay.
        """
        with self.lock:
            before = real("before", before, at_least=0.0, at_most=self._clock())
            fold = self._fold
            old = [entry for entry in self.log(upto=before) if entry.due is None or entry.due <= fold.over]
            counts = dict(fold.counts)
            for entry in old:
                fold.forget(entry.id, entry.status)
            try:
                gone = self.store.purge(self.name, before, fold.over, fold.snapshot(self._clock(), base=True))
            except BaseException:
                fold.counts = counts
                raise
            self._saved = fold.seq
            return gone

    def log(self, upto: float | None = None, *, after: int = 0, last: int | None = None) -> Iterator[Entry]:
        """Yield every decision (made before `upto`) as it stands now, in the order of the log.

        Or only those with places in (after, last].
        """
        for row in self.store.log(self.name, after, last):
            if isinstance(row, DecisionRow) and (upto is None or row.made < upto):
                history = History(row, self.store.events(row.id))
                yield entry_of(history, standing(history, self.rules(row.settings), self._fold.over))

    def probabilities(self, context: Mapping[str, Any], actions: Any = None) -> Floats:
        """Return what a decision would be drawn from now, one probability for each action, without making it."""
        return self._probabilities(Decide(context=context, actions=actions))

    def weights(self) -> dict[str, Floats]:
        """Return the posterior means of the weights: of each action, or of all under an empty name."""
        with self.lock:
            fold = self._fold
            now = fold.time(max(self._clock(), fold.latest), fold.made)
            if not self._own_blocks():
                return {"": fold.posterior.mean(0, now)}
            names = dict.fromkeys([*self.settings.actions, *fold.blocks])
            return {name: fold.posterior.mean(fold.blocks.get(name, -1), now) for name in names}

    def summary(self) -> dict[str, Any]:
        """Return figures for people and metrics."""
        with self.lock:
            fold = self._fold
            return {
                "model": self.name,
                "settings_version": self.settings_version,
                "model_version": fold.version,
                "decisions": fold.made,
                "states": {state.value: count for state, count in fold.counts.items()},
                "parked": fold.parked,
                "outcomes": {status.value: count for status, count in self.counts.items()},
                "noise": fold.posterior.noise(fold.time(fold.latest, fold.made)),
                "seq": fold.seq,
                "latest": fold.latest,
                "next_due": fold.next_due,
            }

    def oldest(self) -> Entry | None:
        """Return the oldest decision in flight."""
        row = self._oldest()
        return None if row is None else self.lookup(row.id)

    @property
    def lag(self) -> int:
        """How many places of the log are not in the state yet: rows of other processes."""
        return max(0, self.store.last(self.name) - self._fold.seq) if self.store.shared else 0

    @property
    def rewarded(self) -> float:
        """When the latest reward came; 0 if none has since the snapshot that this object started from."""
        return self._fold.rewarded

    @property
    def retries(self) -> int:
        """How often rounding left a matrix without a factor, since this object was made; it was enlarged a little."""
        return self._fold.posterior.retries

    @property
    def unsaved(self) -> int:
        """How many places of the log came after the latest snapshot: a restart reads them again."""
        return self._fold.seq - self._saved

    @property
    def in_flight(self) -> int:
        """How many decisions are active and have neither a reward nor a window that is over."""
        return self._fold.counts[State.IN_FLIGHT]


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True).encode


def _json(name: str, value: Any, encode: Callable[[Any], str] = _encode) -> str:
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):
        raise refuse(name, value, "what JSON can hold: finite numbers, strings, lists and objects") from None

"""A model: named actions, JSON contexts and a durable log around the core of decisions."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._util.validate import flag, real, refuse
from belated.decisions._aged import AgedPosterior
from belated.decisions._ageing import Ages
from belated.decisions._beliefs import Arrival, arrival
from belated.decisions._core import Offer, State, apply, preview
from belated.decisions._encoding import PER_ACTION, check_text
from belated.decisions._engine import ATTEMPTS, Engine
from belated.decisions._ids import Clock, new_id, time_of
from belated.decisions._ledger import entry, tally
from belated.decisions._members import SparseOffer, SparsePosterior, salt_of, sparse_offer
from belated.decisions._operations import (
    Activate,
    Answer,
    Cancel,
    Choice,
    ConflictError,
    Decide,
    Decided,
    DecisionState,
    End,
    Entry,
    Operation,
    Outcome,
    Reward,
    Signal,
)
from belated.decisions._rows import DecisionRow, Row, SettingsRow
from belated.decisions._sessions import Arrays, history_of, warm_up
from belated.decisions._sessions import find as find_session
from belated.decisions._settings import MOST_ACTIONS, ModelSettings
from belated.decisions._snapshot import take
from belated.decisions._store.base import Store
from belated.errors import BelatedError, InvalidInputError, UnknownNameError
from belated.types import Floats

if TYPE_CHECKING:
    from belated.decisions._planner import Planner

#: Settings that cannot change during the life of a model, since its sums would become meaningless.
FIXED = ("encoding", "signals", "likelihood", "forgetting", "seed", "horizon", "basis")
#: Settings that determine the members of a sparse posterior.
SPARSE = ("draws", "noise", "ridge")
#: A reward is parked if its id was made within this many seconds; and the maximum difference between two machines'
#: clocks.
PARKING, SKEW = 3600.0, 60.0
#: Maximum number of rows buffered for the planner.
RECENT = 2**14


def fixed_settings(settings: ModelSettings) -> tuple[str, ...]:
    """Return the names of the settings that cannot change during the life of a model."""
    return FIXED + (SPARSE if settings.is_sparse(settings.encoding.dimension) else ())


_NO_FEATURES: Floats = np.zeros((1, 0))


class JsonRequests:
    """Requests with contexts as JSON and actions by name."""

    def __init__(self, settings: ModelSettings) -> None:
        self.dimension, self.own_weights = settings.encoding.dimension, settings.encoding.weights == PER_ACTION
        self.sparse = settings.is_sparse(self.dimension)

    def encode(self, given: Decide, settings: ModelSettings) -> Offer:
        offer, text = settings.offer, settings.offer_text
        if given.actions is not None:
            offer = _offered(given.actions, settings)
            text = _json("actions", given.actions if isinstance(given.actions, Mapping) else list(offer))
        if not offer:
            raise refuse("actions", given.actions, "given with the request (at least one)")
        # The state of a step is encoded with the session: see `_plans`.
        features: Floats | SparseOffer = _NO_FEATURES
        if self.sparse:
            features = sparse_offer(settings.encoding, given.context, offer)
        elif settings.sessions is None:
            features = settings.encoding.matrix(given.context, offer)
        return Offer(tuple(offer), features, _json("context", given.context), text)

    def canonical(self, given: Decide) -> bytes:
        body = [given.context, given.actions, given.active, given.size, given.chosen, given.probability, given.id]
        if given.session is not None:
            body.append(given.session)
        return _json("the request", body, _encode_sorted).encode()

    def may_appear(self, id: str, now: float) -> bool:  # noqa: A002
        """Whether an id was generated recently, so that another process may still store its decision."""
        made = time_of(id)
        return made is not None and now - PARKING <= made <= now + SKEW


def _offered(actions: Any, settings: ModelSettings) -> dict[str, Mapping[str, Any]]:
    """Return the actions of a request, with their features."""
    if isinstance(actions, str) or not isinstance(actions, Mapping | list | tuple) or not actions:
        raise refuse("actions", actions, "a list of names, or an object of names and features, not empty")
    if len(actions) > MOST_ACTIONS or len(set(map(str, actions))) < len(actions):
        raise refuse("actions", actions, f"at most {MOST_ACTIONS} different names")
    known, offered = settings.actions, {}
    for name in actions:
        if known and name not in settings.offer:
            raise refuse("each of actions", name, f"one of those on offer ({', '.join(list(settings.offer)[:20])})")
        features = actions[name] if isinstance(actions, Mapping) else known.get(name, {})
        offered[name if known else check_text("each of actions", name)] = features
    return offered


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True).encode


def _json(name: str, value: Any, encode: Callable[[Any], str] = _encode) -> str:
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):
        raise refuse(name, value, "valid JSON: finite numbers, strings, lists and objects") from None


class Model(Engine):
    """Decides, and learns whenever a reward arrives. Thread-safe.

    A single call (`decide`, `feedback` and so on) is one commit. A service collects operations, possibly of several
    models, and runs them in one commit:

        batches = [model.prepare(operations), ...]   # answers and rows; nothing has changed
        commit(store, batches)                       # durable, and then learned
        batches[0].answers                           # one for each operation

    If the store fails, discard the batches: nothing has changed. Hold `model.lock` from `prepare` to the end of
    `commit`, so that nobody else writes for the model. All decisions of a batch are drawn from the posterior before the
    batch.

    Parameters
    ----------
    name
        Name of the model, unique within its store.
    settings
        A new version is stored if they differ from the latest; None for the latest.
    store
        Where the log is stored.
    clock
        Returns seconds since 1970. None for this machine's clock, or the database's if the store is shared; a jump of
        more than five minutes raises `ClockError`.

    Examples
    --------
    >>> from belated.decisions import MemoryStore
    >>> table = {"actions": ["a", "b"], "features": ["x"], "silence": {"kind": "unknown"}}
    >>> model = Model("ads", ModelSettings.from_table(table), MemoryStore())
    >>> choice = model.decide({"x": 0.3})
    >>> model.feedback(choice.id, 1.0).status, model.feedback(choice.id, 1.0).status
    (<Status.ACCEPTED: 'accepted'>, <Status.DUPLICATE: 'duplicate'>)
    """

    def __init__(self, name: str, settings: ModelSettings | None, store: Store, *, clock: Clock | None = None) -> None:
        check_text("the name of a model", name)
        if not store.settings(name):
            if settings is None:
                raise UnknownNameError(f"model must be one of {store.models()}, got {name!r}")
            try:
                store.add_settings(SettingsRow(name, 1, (clock or store.time)(), settings.to_json()))
            except ConflictError:  # another process has created the same model at the same time
                if not store.shared:
                    raise

        def new_state() -> State:
            versions = {row.version: ModelSettings.from_table(json.loads(row.text)) for row in store.settings(name)}
            return State(name, JsonRequests(versions[1]), versions, store)

        self._reading, self._planning = Lock(), Lock()
        self._planner: Planner | None = None
        self._recent: deque[Row] = deque(maxlen=RECENT)
        """The latest rows of the log, so that the planner need not read them from the store."""
        self._weights: tuple[tuple[object, ...], dict[str, Floats]] | None = None  # cached for one version of the state
        super().__init__(name, store, clock, new_state)
        self.has_sessions = self.settings.sessions is not None
        """Whether decisions are steps of sessions; never changes."""
        if self.has_sessions:
            warm_up(self.state)
        if settings is not None:
            self.change(settings)

    @property
    def settings(self) -> ModelSettings:
        return self.state.settings

    @property
    def settings_version(self) -> int:
        return self.state.settings_version

    def run(
        self, operations: Sequence[Operation], *, all_or_none: bool = False
    ) -> list[Choice | Outcome | BelatedError]:
        """Run `operations` in one commit; with `all_or_none`, raise the first error of a decision and store nothing."""
        return [_shown(answer) for answer in self.answer(operations, all_or_none=all_or_none)]

    def decide(self, context: Mapping[str, Any], **options: Any) -> Choice:
        """Choose an action; the options are those of `Decide`."""
        return self.decide_many([context], **options)[0]

    def decide_many(self, contexts: Sequence[Mapping[str, Any]], **options: Any) -> list[Choice]:
        """Choose an action for each context, in one commit; all or none."""
        answers = self.answer([Decide(context, **options) for context in contexts], all_or_none=True)
        return [choice_of(answer.row) for answer in answers if isinstance(answer, Decided)]

    def feedback(self, id: str, reward: float, **options: Any) -> Outcome:  # noqa: A002
        """Report a reward; the options are those of `Reward`. For a session, pass an empty id and `session`."""
        return self._event(Reward(id, reward, **options))

    def signal(self, id: str, signal: str, value: float = 1.0, **options: Any) -> Outcome:  # noqa: A002
        """Report a signal, which may precede a reward; the options are those of `Signal`."""
        return self._event(Signal(id, signal, value, **options))

    def feedback_many(self, rewards: Sequence[Reward]) -> list[Outcome]:
        """Report many rewards in one commit, with an outcome for each."""
        return [answer for answer in self.answer(rewards) if isinstance(answer, Outcome)]

    def record(self, context: Mapping[str, Any], action: str, reward: float | None = None, **options: Any) -> Choice:
        """Store and learn a decision made elsewhere, in one commit; the options are those of `Decide`."""
        if reward is None:
            return self.decide(context, chosen=action, **options)
        real("reward", reward)
        with self.lock:
            if options.get("key") is not None:  # it may already be recorded under another id
                choice = self.decide(context, chosen=action, **options)
                self.feedback(choice.id, reward)
                return choice
            name = options.pop("id", None)
            name = self.new_id() if name is None else name
            decision = Decide(context, chosen=action, id=name, **options)
            answer = self.answer([decision, Reward(name, reward)], all_or_none=True)[0]
            assert isinstance(answer, Decided)
            self.tick()  # its window may already be over
            return choice_of(answer.row)

    def new_id(self) -> str:
        """Return an id for a decision to be made now, for callers who need it in advance."""
        return new_id(self.now())

    def activate(self, id: str) -> Outcome:  # noqa: A002
        """Activate a decision made with `active=False`: it counts from now on."""
        return self._event(Activate(id))

    def cancel(self, id: str = "", *, session: str | None = None) -> Outcome:  # noqa: A002
        """Cancel a decision or a whole session, and unlearn it exactly."""
        return self._event(Cancel(id, session))

    def end(self, session: str, *, terminal: bool = False, context: Mapping[str, Any] | None = None) -> Outcome:
        """End a session. Unless it is `terminal` it was cut; `context` is the state in which it was cut, if known."""
        return self._event(End(session, terminal, context))

    def new_planner(self) -> Planner:
        """Return a planner that has not read the log yet."""
        from belated.decisions._planner import Planner  # imports all agents

        return Planner(self.name, self.store, self._new_state)

    def finish(self, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        super().finish(rows, answers)
        if self._planner is not None and not self.store.shared:
            self._recent.extend(rows)

    def rehearse(self) -> None:
        """Compile what the first plans of sessions would otherwise wait for."""
        from belated.decisions._session_learner import rehearse

        if self.has_sessions:
            with suppress(BelatedError):  # synthetic contexts may be outside the range of a feature map
                rehearse(self.settings.to_json())

    def plan(self, rest: Callable[[], None] = lambda: None) -> int:
        """Draw a set of plans from the current log and publish it; return the log position it was drawn from.

        New sessions draw from it; decisions do not wait for it. If nothing is new since the latest set, or another
        process has published one, that set stays. `rest` is called after each learned row of the log, so that a
        background thread can yield to others.
        """
        from belated.decisions._plans import plans_from_bytes

        with self._planning:
            with self.lock:
                if self.store.shared:
                    self.catch_up()
                state = self.state
                if state.sessions is None:
                    raise refuse("the model", self.name, "a model of sessions, with a horizon")
                upto, version, known = state.seq, state.settings_version, state.sessions.plan
                settings = state.settings
                recent = list(self._recent)
                self._recent.clear()
            planner = self._the_planner()
            planner.catch_up(upto, recent, rest)
            if planner.drawn is None or planner.version != version or known is None:
                made = planner.draw(settings, version, self.now())
                assert planner.state.sessions is not None
                self.publish(made, planner.state.sessions.ended, plans_from_bytes(settings, made.content))
            with self.lock:
                assert self.state.sessions is not None
                return self.state.sessions.plan or 0

    def plan_is_due(self) -> bool:
        """Whether there is no set of plans yet, or something new since the latest."""
        with self.lock:
            if self.store.shared:
                self.catch_up()
            sessions = self.state.sessions
            return sessions is not None and (sessions.plan is None or sessions.told > sessions.plan)

    def recompute(self) -> list[str]:
        """Recompute the state and the sets of plans from the log, and return the differences, if any."""
        found = super().recompute()
        if found or not self.has_sessions or not self.store.plans(self.name):
            return found
        from belated.decisions._planner import different

        return different(self.name, self.store, self._new_state)

    def _event(self, given: Reward | Signal | Activate | Cancel | End) -> Outcome:
        (answer,) = self.answer([given])
        assert isinstance(answer, Outcome)
        return answer

    def change(self, settings: ModelSettings) -> int:
        """Change the settings, for instance the actions; return their version.

        Settings that the sums depend on (encoding, signals, ages, forgetting, seed) cannot change: migrate to another
        store.
        """
        with self.lock:
            for attempt in range(1, ATTEMPTS + 1):
                for row in self.store.settings(self.name):
                    if row.version > self.settings_version:  # stored by another process
                        apply(self.state, row)
                settings = settings.continued(self.settings)
                if settings.to_json() == self.settings.to_json():
                    break
                for name in fixed_settings(settings):
                    if getattr(settings, name) != getattr(self.settings, name):
                        raise InvalidInputError(
                            f"{name} is fixed for the life of a model and must be {getattr(self.settings, name)}, got "
                            f"{getattr(settings, name)}: `belated decisions migrate` copies the store with new settings"
                        )
                if settings.silence != self.settings.silence and Ages.of(settings.silence) != self.state.ages:
                    raise InvalidInputError(
                        f"silence must keep its ages for the life of a model, {self.settings.silence}, got "
                        f"{settings.silence}: `belated decisions migrate` copies the store with new settings"
                    )
                row = SettingsRow(self.name, self.settings_version + 1, self._clock(), settings.to_json())
                try:
                    self.store.add_settings(row)
                except ConflictError:  # another process has stored this version first: catch up and retry
                    if not self.store.shared or attempt == ATTEMPTS:
                        raise
                    continue
                apply(self.state, row)
                break
            return self.settings_version

    def add_action(self, name: str, features: Mapping[str, Any] | None = None) -> int:
        """Add an action, or offer a retired one again; return the version of the settings."""
        with self.lock:
            return self.change(self.settings.with_action(name, features))

    def retire_action(self, name: str) -> int:
        """Stop offering an action; rewards of its decisions still count. Return the version of the settings."""
        with self.lock:
            return self.change(self.settings.without_action(name))

    def purge(self, before: float) -> int:
        """Drop the decisions made before a time (seconds since 1970) and return their number; what was learned stays.

        Decisions with an open window stay. Other processes may keep using the store.
        """
        with self._alone():
            before, over = real("before", before, at_least=0.0, at_most=self._clock()), self.state.over
            old = [each for each in self.log(upto=before) if each.due is None or each.due <= over]
            steps = Counter(each.session for each in old)
            gone = [each.id for each in old if each.session is None or self._is_over(each.session, steps)]
            self.drop(gone, keep_learned=True, before=before)
            return len(gone)

    def _is_over(self, name: str, steps: Mapping[str | None, int]) -> bool:
        """Whether a session has ended and has no steps beyond these."""
        session = find_session(self.state, name)
        return session is not None and not self.is_open(name) and len(session.ids) == steps[name]

    def is_open(self, session: str) -> bool:
        """Whether a session has a step and has not ended."""
        sessions = self.state.sessions
        return sessions is not None and session in sessions.open

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold all locks with an up-to-date state; the planner's lock must be taken first."""
        with self._planning:
            if self.has_sessions:
                self._the_planner().catch_up(self.state.seq)  # little is left to learn under the locks
            with self.lock:
                if self.store.shared:
                    self.catch_up()
                yield

    def keep_learned(self) -> None:
        """Store the planner's memory in a snapshot, so that the next process need not read the whole log."""
        if self._planner is not None:
            with self._alone():
                self._planner.catch_up(self.state.seq)
                self.store.save_snapshot(take(self.state, self.now(), self._planner.learner.memory()))

    def memory(self, dropped: Collection[str]) -> Arrays | None:
        """Return the planner's memory without the sessions in `dropped`; the planner's lock must be held."""
        if not self.has_sessions:
            return None
        planner = self._the_planner()
        planner.catch_up(self.state.seq)
        return planner.without(dropped)

    def _the_planner(self) -> Planner:
        if self._planner is None:
            self._planner = self.new_planner()
        return self._planner

    def erase(
        self,
        ids: Sequence[str] = (),
        *,
        keys: Sequence[str] = (),
        sessions: Sequence[str] = (),
        keep_learned: bool,
    ) -> int:
        """Erase decisions by id, idempotency key or session; return their number.

        A session is erased with all its steps. Nothing of them stays in the store except a digest of each id, so that
        it is recognised as forgotten. `keep_learned` says whether what was learned from them stays or is removed
        exactly.
        """
        flag("keep_learned", keep_learned)
        with self._alone():
            wanted = [check_text("each of ids", each) for each in ids]
            for key in keys:
                row = self.store.keyed(self.name, check_text("each of keys", key))
                if row is None:
                    raise UnknownNameError(f"keys must be those of stored decisions of {self.name!r}, got {key!r}")
                wanted.append(row.id)
            whole = dict.fromkeys(check_text("each of sessions", each) for each in sessions)
            for each in whole:
                self.lookup_session(each)  # raises an error if it does not exist
            for each in wanted:
                tracked = self.state.find(each)
                if tracked is None:
                    raise self.absent(each)
                if tracked.decision.session is not None:
                    whole[tracked.decision.session] = None
            steps = [row.id for name in whole for row in self.store.steps(self.name, name)]
            wanted = list(dict.fromkeys([*wanted, *steps]))
            if wanted:
                self.drop(wanted, keep_learned=keep_learned)
            return len(wanted)

    def log(self, upto: float | None = None, *, after: int = 0, last: int | None = None) -> Iterator[Entry]:
        """Yield every decision (made before `upto`) in its current state, in log order.

        `after` and `last` restrict them to positions in (after, last].
        """
        for row in self.store.log(self.name, after, last):
            if isinstance(row, DecisionRow) and (upto is None or row.made < upto):
                events, settings = self.store.events(row.id), self.state.settings_of(row.settings)
                if row.session is not None:
                    events = history_of(self.state, row, events)
                yield entry(row, events, tally(row, events, settings, self.state.over))

    def probabilities(self, context: Mapping[str, Any], actions: Any = None) -> Floats:
        """Return the probabilities from which a decision would be drawn now, one for each action, without making it."""
        with self.lock:
            return preview(self.state, Decide(context, actions), self.now())

    def weights(self) -> dict[str, Floats]:
        """Return the posterior means of the weights by action; shared weights have an empty name."""
        with self._reading:  # one caller computes, and decisions do not wait for it
            with self.lock:
                state, settings = self.state, self.settings
                now = state.time(self.now(), state.made)
                version = state, state.version, state.settings_version, len(state.blocks), now
                if self._weights is not None and self._weights[0] == version:
                    return {name: mean.copy() for name, mean in self._weights[1].items()}
                if isinstance(state.posterior, SparsePosterior):  # its mean is stored
                    known = [*settings.actions, *state.blocks] if state.requests.own_weights else [""]
                    return {name: state.posterior.mean(salt_of(name) if name else 0) for name in dict.fromkeys(known)}
                blocks, arrays, posterior = dict(state.blocks), state.posterior.state(), state.new_posterior()
            assert not isinstance(posterior, SparsePosterior)
            posterior.restore(arrays)
            if state.sessions is not None:
                found = {}  # what the agent has learned is in its plans
            elif not state.requests.own_weights:
                found = {"": posterior.mean(0, now)}
            else:
                names = dict.fromkeys([*settings.actions, *blocks])
                found = {name: posterior.mean(blocks.get(name, -1), now) for name in names}
            self._weights = version, found
            return {name: mean.copy() for name, mean in found.items()}

    def beliefs(self) -> dict[str, Arrival]:
        """Return the expected reward of each action by age; shared weights have an empty name.

        Actions without data are left out.
        """
        with self._reading:
            with self.lock:
                state, silence = self.state, self.settings.silence
                now = state.time(self.now(), state.made)
                if isinstance(state.posterior, SparsePosterior):
                    return {}  # there are no sums from which to compute an average decision
                blocks, arrays, posterior = dict(state.blocks), state.posterior.state(), state.new_posterior()
            assert not isinstance(posterior, SparsePosterior)
            posterior.restore(arrays)
            found = {
                name: arrival(posterior, silence, block, now)
                for name, block in (blocks if state.requests.own_weights else {"": 0}).items()
            }
            return {name: each for name, each in found.items() if each.seconds}

    def worth(self) -> dict[str, float]:
        """Return, for each signal, the fraction of the reward's variance that it reveals in advance."""
        with self._reading:
            if not self.settings.signals:
                return {}
            with self.lock:
                names, arrays, posterior = (
                    self.settings.signals,
                    self.state.posterior.state(),
                    self.state.new_posterior(),
                )
            if not isinstance(posterior, AgedPosterior):
                return {}
            posterior.restore(arrays)
            return dict(zip(names, posterior.worth().tolist(), strict=True))

    def summary(self) -> dict[str, Any]:
        """Return counts and other figures for dashboards and metrics."""
        with self.lock:
            state = self.state
            return {
                "model": self.name,
                "settings_version": self.settings_version,
                "model_version": state.version,
                "decisions": state.made,
                "states": {where.value: count for where, count in state.counts.items()},
                "parked": state.parked,
                "lapsed": state.lapsed,
                "outcomes": {status.value: count for status, count in self.counts.items()},
                "noise": state.posterior.noise(state.time(state.latest, state.made)),
                **(state.posterior.summary() if isinstance(state.posterior, SparsePosterior) else {}),
                "seq": state.seq,
                "latest": state.latest,
                "next_due": state.next_due,
                **({} if state.sessions is None else {"sessions": self._sessions_summary()}),
            }

    def _sessions_summary(self) -> dict[str, Any]:
        sessions = self.state.sessions
        assert sessions is not None
        return {
            "open": len(sessions.open),
            "opened": sessions.opened,
            "ended": sessions.ended,
            "unseen": sessions.ended - sessions.seen,
            "plan": sessions.plan,
            "planned": sessions.planned,
            "behind": sessions.plan is None or sessions.told > sessions.plan,
        }

    def oldest(self) -> Entry | None:
        """Return the oldest decision in flight."""
        found = self.oldest_id()
        return None if found is None else self.lookup(found)

    @property
    def lag(self) -> int:
        """Number of rows that are not in the state yet, all of other processes."""
        return max(0, self.store.last(self.name) - self.state.seq) if self.store.shared else 0

    @property
    def rewarded(self) -> float:
        """When the latest reward arrived; 0 if none has since the snapshot that this object started from."""
        return self.state.rewarded

    @property
    def retries(self) -> int:
        """How often a factor could not be computed in floats, since this object was created."""
        return self.state.posterior.retries

    @property
    def unsaved(self) -> int:
        """Number of rows since the latest snapshot, which a restart replays."""
        return self.state.seq - self._saved

    @property
    def in_flight(self) -> int:
        """Number of active decisions without a reward whose window is open."""
        return self.state.counts[DecisionState.IN_FLIGHT]


def choice_of(row: DecisionRow) -> Choice:
    """Return the public view of a decision."""
    return Choice(
        row.id, row.ranking[0], row.probability, row.version, row.ranking, row.suggestion, row.session, row.step
    )  # fmt: skip


def _shown(answer: Answer) -> Choice | Outcome | BelatedError:
    return choice_of(answer.row) if isinstance(answer, Decided) else answer

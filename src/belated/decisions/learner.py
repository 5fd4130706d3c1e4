"""The learner: decides now, and learns whenever a reward comes."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from belated.decisions.kernels import add_product, choose, count_choices
from belated.decisions.values import LARGEST, ConflictError, Decision, DefaultAfter, Unknown
from belated.errors import BelatedError, DamagedFileError, UnknownNameError
from belated.posterior.gaussian import rank_one_update, solve, solve_transposed
from belated.rng import generator_state, restore_generator, stream
from belated.storage import load_arrays, save_arrays
from belated.types import Floats
from belated.validate import array, indices, integer, real, refuse

KIND, VERSION = "belated-decisions", 1

_PENDING, _DEFAULT, _REWARDED = 0, 1, 2
_COUNTED_ID = re.compile(r"d-[0-9]+")


class DecisionLearner:
    """A contextual linear bandit whose rewards come later: in any order, repeated, corrected or never.

    The features of every decision are kept, d numbers each, until `forget`: a late reward or a correction needs
    them. Calls must not overlap; one learner belongs to one thread at a time.

    Parameters
    ----------
    dimension
        Length d of a feature vector.
    silence
        What no reward means: `Unknown()` or `DefaultAfter(decisions, reward)`.
    draws
        Posterior draws M per decision; more explore more.
    scale
        ν, multiplies the posterior's standard deviations.
    noise
        Standard deviation σ of the rewards.
    ridge
        Prior precision λ of the weights.
    propensity_draws
        How many times a decision is drawn again, from a stream of its own, to estimate its probability; 0: not at all.
        With `n` of `K` redraws agreeing the estimate is (n + 1)/(K + 1): never zero, and its inverse, the weight in
        an off-policy estimate, is unbiased up to a factor 1 − (1 − p)ᴷ⁺¹.
    seed
        Seed of the random streams.

    Examples
    --------
    >>> learner = DecisionLearner(2, silence=Unknown())
    >>> decision = learner.decide([[1.0, 0.0], [0.0, 1.0]])
    >>> learner.pending
    1
    >>> learner.feedback(decision.id, 1.0)
    >>> learner.feedback(decision.id, 1.0)  # delivered twice, counted once
    >>> learner.pending, learner.settled
    (0, 1)
    """

    def __init__(
        self,
        dimension: int,
        *,
        silence: Unknown | DefaultAfter,
        draws: int = 1,
        scale: float = 1.0,
        noise: float = 1.0,
        ridge: float = 1.0,
        propensity_draws: int = 0,
        seed: int = 0,
    ) -> None:
        self.dimension = integer("dimension", dimension, at_least=1)
        self.draws = integer("draws", draws, at_least=1)
        self.scale = real("scale", scale, at_least=0, at_most=LARGEST)
        self.noise = real("noise", noise, at_least=1 / LARGEST, at_most=LARGEST)
        self.ridge = real("ridge", ridge, at_least=1 / LARGEST, at_most=LARGEST)
        self.propensity_draws = integer("propensity_draws", propensity_draws, at_least=0)
        self.seed = integer("seed", seed, at_least=0)
        if not isinstance(silence, Unknown | DefaultAfter):
            raise refuse("silence", silence, "Unknown() or DefaultAfter(decisions, reward)")
        self.silence = silence
        self._rng, self._propensity_rng = stream(self.seed, "decisions"), stream(self.seed, "propensity")
        self._factor = np.eye(self.dimension) * np.sqrt(self.ridge)
        self._moment = np.zeros((2, self.dimension))
        self._made = 0
        self._records = np.zeros(0, self._layout())
        self._ids: list[str] = []
        self._rows: dict[str, int] = {}
        self._pending = 0
        self._oldest = 0  # the row of the oldest pending decision, or the number of rows

    def decide(self, contexts: Floats | list[list[float]], *, key: str | None = None) -> Decision:
        """Choose a row of `contexts`, the features of each possible action, shape (actions, d).

        With a `key` the decision has that id, and asking again with the same contexts returns it unchanged; other
        contexts raise `ConflictError`. A key is free again once its decision was forgotten.
        """
        table = array("contexts", contexts, (None, self.dimension))
        integer("the number of actions in contexts", table.shape[0], at_least=1)
        peak = max(float(table.max()), -float(table.min()))
        if peak > LARGEST:
            raise refuse("contexts", peak, f"of magnitude at most {LARGEST:g}")
        digest = bytes(16)
        if key is not None:
            if not isinstance(key, str) or not key or _COUNTED_ID.fullmatch(key):
                raise refuse("key", key, "a string, not empty and not like d-000001, the ids given without a key")
            digest = hashlib.blake2b((table + 0.0).tobytes(), digest_size=16).digest()  # −0 becomes 0
            row = self._rows.get(key)
            if row is not None:
                if self._records["digest"][row].tobytes() != digest:
                    raise ConflictError(f"key {key!r} already has a decision, made with other contexts")
                return self._decision(row)
        normals = self._rng.standard_normal((self.draws, self.dimension))
        action = choose(self._factor, self._moment, self.scale, normals, table, self._rng.random())
        probability = self._propensity(table, action) if self.propensity_draws else np.nan
        number = self._made + 1
        row = len(self._ids)
        if row == self._records.size:
            grown = np.zeros(max(16, 2 * row), self._layout())
            grown[:row] = self._records
            self._records = grown
        code = np.frombuffer(digest, np.uint8)
        self._records[row] = (number, action, _PENDING, 0.0, probability, code, table[action])
        self._ids.append(f"d-{number:06d}" if key is None else key)
        self._rows[self._ids[row]] = row
        self._made = number
        self._pending += 1
        decision = self._decision(row)
        self._count_silence()
        return decision

    def feedback(self, id: str, reward: float, *, correction: bool = False) -> None:  # noqa: A002
        """Learn the reward of a decision, at any time and in any order.

        The same reward again changes nothing. Another one raises `ConflictError`, unless it is a `correction`, which
        replaces the old one exactly. A correction of a reward that has not arrived counts as the reward.
        """
        if not isinstance(id, str):
            raise refuse("id", id, "a string")
        value = real("reward", reward, at_least=-LARGEST, at_most=LARGEST)
        if not isinstance(correction, bool):
            raise refuse("correction", correction, "True or False")
        row = self._rows.get(id)
        if row is None:
            raise UnknownNameError(f"id must be of a decision that was made and not forgotten, got {id!r}")
        if self._records["status"][row] == _REWARDED:
            old = float(self._records["reward"][row])
            if value == old:
                return
            if not correction:
                raise ConflictError(f"decision {id!r} already has the reward {old!r}, got {value!r} without correction")
        self._settle(row, value, _REWARDED)

    def forget(self, before: int) -> int:
        """Drop the settled decisions with a number below `before` and return how many; what they taught stays.

        Pending decisions stay too. A reward or a correction for a forgotten decision raises `UnknownNameError`.
        """
        before = integer("before", before, at_least=1)
        records = self._records[: len(self._ids)]
        kept = (records["number"] >= before) | (records["status"] == _PENDING)
        forgotten = int(kept.size - kept.sum())
        if forgotten:
            self._keep(records[kept], [self._ids[row] for row in np.flatnonzero(kept)])
        return forgotten

    def mean(self) -> Floats:
        """Return θ̂, the posterior mean of the weights."""
        weights: Floats = self._moment.sum(axis=0)
        solve_transposed(self._factor, weights)
        solve(self._factor, weights)
        return weights

    @property
    def pending(self) -> int:
        """How many decisions count with no reward yet, neither their own nor a default one."""
        return self._pending

    @property
    def settled(self) -> int:
        """How many decisions count with a reward, forgotten ones included."""
        return self._made - self._pending

    @property
    def oldest(self) -> Decision | None:
        """The oldest pending decision."""
        return self._decision(self._oldest) if self._pending else None

    def save(self, path: str | Path) -> None:
        """Write everything, pending decisions and random streams included, to one file."""
        header = {
            "settings": {
                name: getattr(self, name)
                for name in ("dimension", "draws", "scale", "noise", "ridge", "propensity_draws", "seed")
            },
            "silence": asdict(self.silence),
            "streams": [generator_state(self._rng), generator_state(self._propensity_rng)],
            "made": self._made,
            "ids": self._ids,
        }
        arrays = {"factor": self._factor, "moment": self._moment, "decisions": self._records[: len(self._ids)]}
        save_arrays(Path(path), KIND, VERSION, header, arrays)

    @classmethod
    def load(cls, path: str | Path, *, accept_old: bool = False) -> DecisionLearner:
        """Return the learner that `save` wrote; it goes on as if it had never stopped.

        A file without a digest, as older versions wrote them, is refused unless `accept_old`.
        """
        header, arrays = load_arrays(Path(path), KIND, VERSION, accept_old=accept_old)
        try:
            silence = DefaultAfter(**header["silence"]) if header["silence"] else Unknown()
            learner = cls(**header["settings"], silence=silence)
            learner._restore(header, arrays)
        except (BelatedError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFileError(f"{path} does not hold a usable learner: {error}") from error
        return learner

    def __repr__(self) -> str:
        """Show the settings that matter most, the counts and the posterior mean."""
        head = ", ".join(f"{weight:.3g}" for weight in self.mean()[:6])
        more = ", ..." if self.dimension > 6 else ""
        return (
            f"DecisionLearner(dimension={self.dimension}, silence={self.silence}, pending={self.pending}, "
            f"settled={self.settled}, mean=[{head}{more}])"
        )

    def _layout(self) -> np.dtype[np.void]:
        fields: list[Any] = [("number", "i8"), ("action", "i8"), ("status", "i8"), ("reward", "f8")]
        return np.dtype([*fields, ("probability", "f8"), ("digest", "u1", 16), ("features", "f8", (self.dimension,))])

    def _keep(self, records: npt.NDArray[np.void], ids: list[str]) -> None:
        self._records, self._ids = records, ids
        self._rows = {name: row for row, name in enumerate(ids)}
        self._pending = int((records["status"] == _PENDING).sum())
        self._oldest = 0
        self._advance()

    def _advance(self) -> None:
        status = self._records["status"]
        while self._oldest < len(self._ids) and status[self._oldest] != _PENDING:
            self._oldest += 1

    def _decision(self, row: int) -> Decision:
        number, action, _, _, probability, _, features = self._records[row]
        features = features.copy()
        features.flags.writeable = False
        known = None if math.isnan(probability) else float(probability)
        return Decision(self._ids[row], int(number), int(action), known, features)

    def _propensity(self, table: Floats, action: int) -> float:
        normals = self._propensity_rng.standard_normal((self.propensity_draws, self.draws, self.dimension))
        agreeing = count_choices(self._factor, self._moment, self.scale, normals, table, action)
        return (agreeing + 1.0) / (self.propensity_draws + 1.0)

    def _count_silence(self) -> None:
        if isinstance(self.silence, DefaultAfter) and self._pending:
            number = int(self._records["number"][self._oldest])
            if self._made - number >= self.silence.decisions:
                self._settle(self._oldest, self.silence.reward, _DEFAULT)

    def _settle(self, row: int, reward: float, status: int) -> None:
        x = self._records["features"][row] / self.noise
        before = int(self._records["status"][row])
        if before != _PENDING:
            add_product(self._moment, x, -float(self._records["reward"][row]) / self.noise)
        add_product(self._moment, x, reward / self.noise)
        self._records["reward"][row] = reward
        self._records["status"][row] = status
        if before == _PENDING:
            rank_one_update(self._factor, x)
            self._pending -= 1
            self._advance()

    def _restore(self, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        d, ids, records = self.dimension, header["ids"], arrays["decisions"]
        self._made = integer("made", header["made"], at_least=0)
        self._factor = array("factor", arrays["factor"], (d, d)).copy()
        self._moment = array("moment", arrays["moment"], (2, d)).copy()
        if np.tril(self._factor, -1).any() or self._factor.diagonal().min() <= 0:
            raise refuse("factor", self._factor, "upper triangular with a positive diagonal")
        if records.dtype != self._layout() or records.shape != (len(ids),):
            raise refuse("decisions", records.dtype, "one record for each id")
        indices("status", records["status"], (None,), _REWARDED + 1)
        for name in ("reward", "features"):
            array(name, records[name], (None,) * records[name].ndim)
        numbers = [0, *records["number"].tolist(), self._made + 1]
        if any(low >= high for low, high in pairwise(numbers)):
            raise refuse("number", numbers[1:-1], "increasing, from 1 to the number of decisions made")
        if len(set(ids)) != len(ids) or not all(isinstance(name, str) for name in ids):
            raise refuse("ids", ids, "different strings")
        self._keep(records, ids)
        self._rng, self._propensity_rng = map(restore_generator, header["streams"])

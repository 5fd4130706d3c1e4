"""An agent's choice of its feature map: by all that has arrived, fitted again before every plan.

The store keeps raw observations, so that nothing is lost when the map changes: all of them are encoded again.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import stream
from belated._util.plugins import reading
from belated.agents._transitions import TERMINAL, Rows, Sparse
from belated.errors import BelatedError, InvalidInputError
from belated.features import Adaptive, Distinct, Features, Network, Tiles, features_from_dict
from belated.features._adaptive import suited, tiles_of
from belated.features._network import Transitions
from belated.types import Floats, Ints, SimulatorProblem, SparseVector

#: The discount of a network's values is 1 − 2/H, with H clipped to these limits.
SHORTEST, LONGEST = 2, 200
#: If episodes may be longer than this, the network's own values are played.
LONG = 500
#: A network whose own values are played is trained on n-step targets with this n, clipped to the possible values.
STEPS = 3
#: A network is trained for one step per arrived step (or `LONGEST` / H if its own values are played), at most this many
#: per plan.
TRAINING = 1_000
#: Sample size of transitions for a plan on a network's features, which are dense.
SAMPLE = 8_192
#: Sample size for the posterior of the output layer.
FEW = 1_024
_MIX = np.uint64(0x9E3779B97F4A7C15)


class Choice:
    """The current feature map, and when it was fitted."""

    def __init__(self, given: Adaptive, problem: SimulatorProblem) -> None:
        self.given, self._problem = given, problem
        self.map: Features = given
        self.fitted_at = 0.0
        """Number of steps that had arrived when the map was fitted."""
        self._state: Ints = np.zeros(0, np.int64)
        """The state of each observation in the last encoding."""
        self._data: Transitions | None = None
        """The data that the network was last fitted to."""
        self._bounds = -math.inf, math.inf
        """Minimum and maximum possible value at that time, in the network's units."""

    @property
    def plays_values(self) -> bool:
        """Whether the network's own values are played, because episodes may be long."""
        return isinstance(self.map, Network) and self._long

    @property
    def _long(self) -> bool:
        return self._problem.horizon > LONG

    @property
    def _discount(self) -> float:
        """γ of a network's values."""
        return self._problem.discount * (1.0 - 2.0 / min(max(self._problem.horizon, SHORTEST), LONGEST))

    @property
    def duration(self) -> float:
        """Σγⁱ over the horizon."""
        return float(np.sum(self._discount ** np.arange(self._problem.horizon)))

    def follow(self, numbers: Floats, rows: Rows, arrived: float, bounds: tuple[float, float]) -> None:
        """Choose and fit the map for the distinct observations `numbers` (n, d) and their transitions."""
        kind = suited(len(numbers), self.given.size, len(rows.state), self.given.maps)
        if kind == Distinct.kind:
            self.map = Distinct()
        elif kind == Network.kind:
            self.map = self._network(numbers, rows, arrived, bounds)
        else:
            self.map = tiles_of(numbers)
        self.fitted_at = arrived

    def _network(self, numbers: Floats, rows: Rows, arrived: float, bounds: tuple[float, float]) -> Network:
        rng = stream(int(arrived), "features")
        if isinstance(self.map, Network):
            known, since = self.map.rescaled(numbers), arrived - self.fitted_at
        else:
            known, since = Network.begun(numbers, self._problem.actions, rng), arrived
        order = np.argsort(row_keys(numbers, rows))
        unit = math.sqrt(float(np.mean((rows.rewards / rows.visits) ** 2))) or 1.0  # the unit of values
        ahead, share, self._bounds = 1, 1.0, (-math.inf, math.inf)
        if self._long:
            ahead, share = STEPS, LONGEST / self._problem.horizon
            self._bounds = bounds[0] / unit, bounds[1] / unit
        self._data = several_steps(numbers, rows, order, ahead, self._discount, unit)
        return known.fitted_to(self._data, int(min(share * since, TRAINING)), self._bounds, rng)

    def draw(self, width: float, count: int, rng: np.random.Generator) -> tuple[Floats, float]:
        """Return `count` draws of the network's output layer, shape (count, A, k), and their cost."""
        assert isinstance(self.map, Network) and self._data is not None
        known = len(self._data.state)
        columns: list[Any] = [column[:FEW] for column in self._data[1:]]  # those with the smallest hashes
        some = Transitions(self._data.states, *columns)
        drawn = self.map.drawn(some, known / len(some.state), self._bounds, width, count, rng)
        # three passes through the network and Ω, plus sorting and scaling of every row
        return drawn, 4.0 * len(some.state) * self.map.size**2 + 256.0 * known

    def encoded(self, numbers: Floats) -> Sparse:
        """Return the features of the states of the observations; observations in the same tiles are one state."""
        found = Sparse(*self.map.encode_rows(numbers))
        self._state = np.arange(len(numbers))
        if not isinstance(self.map, Tiles):
            return found
        tiles = found.indices.reshape(len(numbers), -1)
        keys = tiles.view(np.dtype((np.void, tiles.itemsize * tiles.shape[1]))).ravel()
        _, first, self._state = np.unique(keys, return_index=True, return_inverse=True)
        return Sparse(found.starts[: len(first) + 1], tiles[first].ravel(), found.values[: tiles[first].size])

    def transitions(self, numbers: Floats, rows: Rows) -> Rows:
        """Return the transitions to plan from, with the states of the last `encoded`."""
        some = self._sampled(numbers, rows)
        after = np.append(self._state, TERMINAL)[some.after]  # the terminal state is last
        return some._replace(state=self._state[some.state], after=after)

    def _sampled(self, numbers: Floats, rows: Rows) -> Rows:
        """Return all transitions or, with a network, a weighted sample."""
        if not isinstance(self.map, Network) or len(rows.state) <= SAMPLE:
            return rows
        kept = np.sort(np.argsort(row_keys(numbers, rows))[:SAMPLE])
        share = float(rows.visits.sum() / rows.visits[kept].sum())
        return Rows(
            state=rows.state[kept],
            action=rows.action[kept],
            after=rows.after[kept],
            visits=rows.visits[kept] * share,
            rewarded=rows.rewarded[kept] * share,
            rewards=rows.rewards[kept] * share,
            squares=rows.squares[kept] * share,
            least=rows.least[kept],
            most=rows.most[kept],
        )

    def told_apart(self, trajectory: Any) -> list[SparseVector]:
        """Return a one-hot feature for each observation of a trajectory if the map is a table, else an empty list."""
        if isinstance(self.map, Tiles | Network):
            return []
        return [Distinct().encode(state.values) for state in trajectory.states]

    def memory(self) -> dict[str, npt.NDArray[Any]]:
        said = {} if self.map is self.given else self.map.to_dict()
        return {
            "features.map": np.frombuffer(json.dumps(said).encode(), np.uint8).copy(),
            "features.fitted_at": np.array([self.fitted_at]),
        }

    def restore(self, memory: dict[str, npt.NDArray[Any]]) -> None:
        """Replace the map by the one described in `memory`."""
        try:
            said = json.loads(memory["features.map"].tobytes())
            with reading(()):
                found = self.given if said == {} else features_from_dict(said)
                found.encode(np.zeros(self.given.size))
            (fitted_at,) = memory["features.fitted_at"].tolist()
        except (BelatedError, ValueError, TypeError, RecursionError) as error:
            raise InvalidInputError(f"memory must hold a feature map for the problem: {error}") from None
        self.map, self.fitted_at = found, fitted_at


def several_steps(numbers: Floats, rows: Rows, order: Ints, ahead: int, discount: float, unit: float) -> Transitions:
    """Return transitions over up to `ahead` steps, continued through states with a single outgoing transition.

    They are in the given `order`, with rewards in units of `unit`.
    """
    paid = rows.rewards / (rows.visits * unit)
    follows = np.full(len(numbers) + 1, -1)  # the only row of each state, or −1; the last entry is the terminal state
    follows[rows.state] = np.arange(len(rows.state))
    follows[:-1][np.bincount(rows.state, minlength=len(numbers)) != 1] = -1
    after, rewards, factor = rows.after.copy(), paid.copy(), np.full(len(paid), discount)
    going = np.arange(len(paid))
    for _ in range(ahead - 1):
        following = follows[after[going]]
        going, following = going[following >= 0], following[following >= 0]
        rewards[going] += factor[going] * paid[following]
        after[going] = rows.after[following]
        factor[going] *= discount
    factor[after == TERMINAL] = 0.0
    return Transitions(numbers, rows.state[order], rows.action[order], after[order], rewards[order], factor[order])


def row_keys(numbers: Floats, rows: Rows) -> npt.NDArray[np.uint64]:
    """Return a hash of each transition's observations and action, independent of the order of arrival."""
    states = np.zeros(len(numbers), np.uint64)
    for column in np.ascontiguousarray(numbers.T).view(np.uint64):
        states = _mixed(states ^ column)
    after = np.append(states, np.uint64(1))[rows.after]  # the terminal state is last
    keys: npt.NDArray[np.uint64] = _mixed(_mixed(states[rows.state] ^ rows.action.astype(np.uint64)) ^ after)
    return keys


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each number (SplitMix64)."""
    bits = bits + _MIX
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def numbers_of(states: Sparse, size: int) -> Floats:
    """Return the raw observations, one per row."""
    return states.values.reshape(-1, size)

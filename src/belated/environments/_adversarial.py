"""`AdversarialMDP`: fixed transitions, and rewards that an adversary chooses for every episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated._kernels.streams import stream
from belated._util.validate import array, choice, flag, integer, refuse
from belated.environments import _kernels as kernels
from belated.environments._finite import FiniteMDP, full_name
from belated.errors import InvalidInputError
from belated.types import Floats, TablePolicy

ADVERSARIES = ("switching", "drifting", "random", "trap")
#: Well below one, so that each pair leads to only a few states and actions matter.
TRANSITION_CONCENTRATION = 0.2
#: Number of tables of a switching adversary.
PHASES = 4


class AdversarialMDP(FiniteMDP):
    """A random MDP whose rewards change from episode to episode, drawn from `seed`.

    The adversary is oblivious: all tables are fixed before the first episode, and episode k has table k mod `period`.
    Except for "trap", a reward is the average of a fixed one, uniform in [0, 1], and one that the adversary moves:

    * ``"switching"``: one of four random tables, each for a quarter of the period;
    * ``"drifting"``: a sine wave of one period, with its own phase for every step and pair;
    * ``"random"``: a uniform random number for every episode;
    * ``"trap"``: at every step and state one action, the lure, pays 1 for the first quarter of the period and
      then 0, another one 0 and then 1; the others pay a fixed random number in [1/4, 3/4].

    Regret is measured against the best fixed policy in hindsight, so that of a single episode can be negative.
    `rewards`, `value` and the optimal values and policy refer to the mean over a period. The start is state 0.

    >>> mdp = AdversarialMDP(adversary="trap", period=400)
    >>> mdp
    AdversarialMDP('adversarial-trap-s5-a3-h5-p400-0', states=5, actions=3, dimension=15, horizon=5)
    >>> mdp.variants
    400
    >>> lured, best = (mdp.comparator(episodes=k) for k in (100, 400))
    >>> float(mdp.values(lured, episode=0)[0, 0]), float(mdp.values(lured, episode=399)[0, 0])
    (5.0, 0.0)
    >>> mdp.value(best) == mdp.optimal_value
    True
    """

    def __init__(
        self,
        states: int = 5,
        actions: int = 3,
        horizon: int = 5,
        adversary: str = "switching",
        period: int = 1000,
        known_dynamics: bool = False,
        seed: int = 0,
    ) -> None:
        choice("adversary", adversary, ADVERSARIES)
        states = integer("states", states, at_least=1)
        actions = integer("actions", actions, at_least=2)
        horizon = integer("horizon", horizon, at_least=1)
        period = integer("period", period, at_least=1)
        seed = integer("seed", seed, at_least=0)
        rng = stream(seed, "adversarial")
        transitions = rng.dirichlet(np.full(states, TRANSITION_CONCENTRATION), size=(states, actions))
        tables = _tables(adversary, rng, period, (horizon, states, actions))
        label = f"adversarial-{adversary}-s{states}-a{actions}-h{horizon}-p{period}-{seed}"
        self._fill(transitions, tables, known_dynamics, full_name(label, "known" if known_dynamics else ""))
        self._specification = {
            "environment": "adversarial",
            "states": states,
            "actions": actions,
            "horizon": horizon,
            "adversary": adversary,
            "period": period,
            "known_dynamics": self._known_dynamics,
            "seed": seed,
        }

    @classmethod
    def from_tables(
        cls, transitions: Any, rewards: Any, *, known_dynamics: bool = False, name: str = "tables"
    ) -> AdversarialMDP:
        """Return the MDP of `transitions`, (S, A, S) or (H, S, A, S), and `rewards` (G, H, S, A), a table per episode.

        >>> coin = AdversarialMDP.from_tables([[[1], [1]]], [[[[1, 0]]], [[[0, 1]]], [[[0, 1]]]])
        >>> coin.comparator(episodes=1).actions.tolist(), coin.comparator(episodes=3).actions.tolist()
        ([[0]], [[1]])
        """
        tables = array("rewards", rewards, (None, None, None, None))
        if tables.size == 0:
            raise refuse("rewards", rewards, "rewards of at least one episode")
        if tables.min() < 0 or tables.max() > 1:
            where = tuple(int(i) for i in np.argwhere((tables < 0) | (tables > 1))[0])
            raise InvalidInputError(f"rewards must be within [0, 1], got {tables[where]} at index {where}")
        mdp = cls.__new__(cls)
        mdp._fill(transitions, tables, known_dynamics, name)
        return mdp

    def _fill(self, transitions: Any, tables: Floats, known_dynamics: bool, name: str) -> None:
        flag("known_dynamics", known_dynamics)
        # rounding may move the mean outside [0, 1]
        means = np.clip(tables.mean(axis=0), 0.0, 1.0)
        super().__init__(transitions, means, name=name, known_dynamics=known_dynamics)
        tables.flags.writeable = False
        self._tables = tables

    @property
    def _variants(self) -> Floats:
        return self._tables

    def comparator(self, episodes: int) -> TablePolicy:
        """Return the best fixed policy in hindsight for the first `episodes` episodes.

        The dynamics never change and the value of a policy is linear in the rewards, so backward induction on the mean
        of the episodes' reward tables finds it.
        """
        whole, rest = divmod(integer("episodes", episodes, at_least=1), self.variants)
        often = np.full(self.variants, float(whole))
        often[:rest] += 1.0
        return self._best(np.tensordot(often / episodes, self._tables, axes=1))[1]

    def value(self, policy: TablePolicy) -> float:
        """Return the exact value of `policy`, averaged over the start and over the episodes of a period."""
        values = np.empty((self.horizon + 1, self.states))
        mean = self.world._replace(rewards=self._rewards[np.newaxis])
        kernels.policy_values(mean, 0, self._checked(policy), values)
        return float(self._start @ values[0])

    def normalised(self) -> FiniteMDP:
        return self


def _tables(adversary: str, rng: np.random.Generator, period: int, shape: tuple[int, int, int]) -> Floats:
    fixed = rng.random(shape)
    moved: Floats
    part = np.arange(period) / period
    if adversary == "trap":
        tables = np.broadcast_to(0.25 + 0.5 * fixed, (period, *shape)).copy()
        lure = rng.integers(shape[2], size=shape[:2])
        other = (lure + rng.integers(1, shape[2], size=shape[:2])) % shape[2]
        early = (part < 0.25).astype(float)[:, np.newaxis, np.newaxis, np.newaxis]
        np.put_along_axis(tables, lure[np.newaxis, ..., np.newaxis], early, axis=3)
        np.put_along_axis(tables, other[np.newaxis, ..., np.newaxis], 1.0 - early, axis=3)
        return tables
    if adversary == "switching":
        moved = rng.random((PHASES, *shape))[(PHASES * part).astype(int)]
    elif adversary == "drifting":
        angles = part[:, np.newaxis, np.newaxis, np.newaxis] + rng.random(shape)
        moved = 0.5 + 0.5 * np.sin(2 * np.pi * angles)
    else:
        moved = rng.random((period, *shape))
    return 0.5 * fixed + 0.5 * moved

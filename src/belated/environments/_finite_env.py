"""Built-in environments as Gymnasium environments; importing this file needs gymnasium."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from belated._util.validate import choice, flag, integer
from belated.environments._deepsea import LEFT_BONUS, SEED, TREASURE, DeepSea, checked_seed, deepsea_name, right_actions
from belated.environments._finite import FiniteMDP
from belated.environments._kernels import first_above, first_state
from belated.environments._registry import environment_from_dict

Picture = npt.NDArray[np.uint8]

#: In pixels: a cell, the line between two cells, and the minimum width, so that the time bar is visible.
CELL, LINE, MINIMUM = 28, 2, 120
PAPER, INK, AGENT, TIME = (250, 250, 247), (200, 200, 195), (38, 84, 168), (224, 150, 40)


class Scene(NamedTuple):
    name: str
    states: int
    columns: int
    state: int
    step: int
    last: tuple[int, float] | None
    """The last action and its reward."""


def as_text(scene: Scene, horizon: int) -> str:
    """Return a status line, and rows of states with the agent as @.

    >>> print(as_text(Scene("riverswim-5", 5, 5, 2, 3, (1, 0.0)), 20))
    riverswim-5: step 3 of 20, action 1 paid 0
    ..@..
    """
    done = "" if scene.last is None else f", action {scene.last[0]} paid {scene.last[1]:g}"
    cells = ["@" if state == scene.state else "." for state in range(scene.states)]
    rows = ["".join(cells[first : first + scene.columns]) for first in range(0, scene.states, scene.columns)]
    return "\n".join([f"{scene.name}: step {scene.step} of {horizon}{done}", *rows])


def as_picture(scene: Scene, horizon: int) -> Picture:
    """Return rows of cells, the agent's filled, and below them a bar for the steps taken."""
    rows = -(-scene.states // scene.columns)
    pitch = CELL + LINE
    width = max(scene.columns * pitch + LINE, MINIMUM)
    picture = np.full((rows * pitch + LINE + CELL // 2, width, 3), PAPER, dtype=np.uint8)
    for state in range(scene.states):
        row, column = divmod(state, scene.columns)
        top, left = row * pitch, column * pitch
        picture[top : top + pitch + LINE, left : left + pitch + LINE] = INK
        inside = picture[top + LINE : top + pitch, left + LINE : left + pitch]
        inside[:] = PAPER
        if state == scene.state:
            inside[4:-4, 4:-4] = AGENT
    picture[-CELL // 4 :, : round(width * scene.step / horizon)] = TIME
    return picture


RENDER_MODES = ["ansi", "rgb_array"]


class LibraryEnv(gymnasium.Env[np.int64, np.int64]):
    """Base class: the observation is the state, `info["step"]` the number of steps taken so far.

    An episode terminates after `horizon` steps. If the rewards or the start change from episode to episode, episodes
    are counted from a seeded reset on, or given as `options={"episode": k}`.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 4}  # noqa: RUF012  (Gymnasium declares it so)

    def __init__(self, label: str, states: int, actions: int, horizon: int, render_mode: str | None) -> None:
        self.render_mode = None if render_mode is None else choice("render_mode", render_mode, RENDER_MODES)
        self.label, self.horizon = label, horizon
        self.observation_space = gymnasium.spaces.Discrete(states)
        self.action_space = gymnasium.spaces.Discrete(actions)
        self._states, self._actions = states, actions
        self._columns = min(states, 40)
        self._state = 0
        self._step = horizon
        self._episode = -1
        self._last: tuple[int, float] | None = None

    @property
    @abstractmethod
    def mdp(self) -> FiniteMDP | None:
        """The same environment with all its tables; None if they are too large."""

    @property
    @abstractmethod
    def noisy(self) -> bool:
        """Whether unbounded noise is added to the rewards."""

    @abstractmethod
    def _first(self) -> int:
        """Return the first state of the episode."""

    @abstractmethod
    def _move(self, action: int) -> tuple[int, float]:
        """Return the next state and the reward."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        given = (options or {}).get("episode")
        episode = None if given is None else integer('options["episode"]', given, at_least=0)
        super().reset(seed=seed)
        following = 0 if seed is not None else self._episode + 1
        self._episode = following if episode is None else episode
        self._state, self._step, self._last = self._first(), 0, None
        return np.int64(self._state), {"step": 0}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        if self._step == self.horizon:
            raise gymnasium.error.ResetNeeded("call reset() before step(): no episode is being played")
        chosen = integer("action", action, at_least=0, at_most=self._actions - 1)
        self._state, reward = self._move(chosen)
        self._step += 1
        self._last = chosen, reward
        return np.int64(self._state), reward, self._step == self.horizon, False, {"step": self._step}

    def render(self) -> Any:
        """Return the state as text (`ansi`) or as an image (`rgb_array`), depending on the render mode."""
        scene = Scene(self.label, self._states, self._columns, self._state, self._step, self._last)
        if self.render_mode == "ansi":
            return as_text(scene, self.horizon)
        return as_picture(scene, self.horizon) if self.render_mode == "rgb_array" else None


class FiniteMDPEnv(LibraryEnv):
    """A `FiniteMDP` with Gymnasium's interface; created by `as_gymnasium`.

    The draws are those of `FiniteMDP.rollout`, in the same order.
    """

    def __init__(self, mdp: FiniteMDP, render_mode: str | None = None) -> None:
        super().__init__(mdp.label, mdp.states, mdp.actions, mdp.horizon, render_mode)
        self._mdp = mdp
        if isinstance(mdp, DeepSea):
            self._columns = mdp.horizon

    @property
    def mdp(self) -> FiniteMDP:
        return self._mdp

    @property
    def noisy(self) -> bool:
        return self._mdp.draws is None

    def _first(self) -> int:
        return int(first_state(self._mdp.world, self._episode, self.np_random))

    def _move(self, action: int) -> tuple[int, float]:
        world, before = self._mdp.world, self._state
        slot = self._step if len(world.transitions) > 1 else 0
        means = world.rewards[self._episode % len(world.rewards)]
        reward = float(means[slot, before, action])
        after = int(first_above(world.cumulative[slot, before, action], self.np_random.random()))
        if world.bernoulli:
            reward = 1.0 if self.np_random.random() < reward else 0.0
        if world.noise.size:
            reward += float(world.noise[before]) * float(self.np_random.standard_normal())
        return after, reward


class NamedMDPEnv(FiniteMDPEnv):
    """A built-in environment by name, for `gymnasium.make`."""

    def __init__(self, environment: str, render_mode: str | None = None, **settings: Any) -> None:
        super().__init__(environment_from_dict({"environment": environment, **settings}), render_mode)


class DeepSeaEnv(LibraryEnv):
    """`DeepSea` without tables, which grow with the fourth power of the size; the same draws, the same episodes."""

    #: Maximum size for which tables are available.
    MOST_TABLES = 20

    def __init__(
        self,
        size: int = 10,
        randomised: bool = False,
        stochastic: bool = False,
        seed: int = SEED,
        render_mode: str | None = None,
    ) -> None:
        self._size = integer("size", size, at_least=2)
        self._randomised, self._stochastic = flag("randomised", randomised), flag("stochastic", stochastic)
        self._seed = checked_seed(seed)
        self._right = right_actions(self._size, self._randomised, self._seed)
        name = deepsea_name(self._size, self._randomised, self._stochastic, self._seed)
        super().__init__(name, self._size**2, 2, self._size, render_mode)
        self._columns = self._size

    @cached_property
    def mdp(self) -> DeepSea | None:
        if self._size > self.MOST_TABLES:
            return None
        return DeepSea(self._size, self._randomised, self._stochastic, self._seed)

    @property
    def noisy(self) -> bool:
        return self._stochastic

    def _first(self) -> int:
        self.np_random.random()  # like the draw of a finite MDP's first state
        return 0

    def _move(self, action: int) -> tuple[int, float]:
        size, before = self._size, self._state
        row, column = divmod(before, size)
        right = action == self._right[before]
        drawn = self.np_random.random()
        reward = 0.0 if right else LEFT_BONUS / size
        if right and before == size * size - 1:
            reward = TREASURE
        if right:
            straight = self._stochastic and drawn < 1.0 / size
            column = column if straight else min(column + 1, size - 1)
        else:
            column = max(column - 1, 0)
        if self._stochastic:
            noise = float(self.np_random.standard_normal())
            reward += noise if before in (size * (size - 1), size * size - 1) else 0.0
        return min(row + 1, size - 1) * size + column, reward

"""One run: one agent, one environment, one law of delays, one seed; out come rows.

A run is played in blocks of episodes. A block is written twice: `play_in_python` asks an agent in Python and serves any
agent; `play_compiled` is the same for the library's own algorithms, compiled. Both draw the same random
numbers in the same order and give the same rows, bit for bit. All that a run holds is the agent, what is under way, and
the rows that are recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from belated.algorithms.agent import Learner
from belated.algorithms.agent import learn as learn_kernel
from belated.algorithms.agent import plan_from as plan_kernel
from belated.algorithms.agent import settle as settle_kernel
from belated.algorithms.around import part_of
from belated.compiled import entry_point
from belated.delays import NEVER, DelayBuffer, DelayByAction, DelayByReward, DelayLaw, Fixed, OutcomeLaw
from belated.environments import FiniteMDP
from belated.environments.kernels import World, first_state, rollout, value_from
from belated.errors import DamagedFileError, InvalidInputError
from belated.rng import generator_state, restore_generator, stream
from belated.runner.post import Post, checked_post, make_post, send, take_first, with_room
from belated.storage import load_arrays, save_arrays
from belated.types import Algorithm, Feedback, Floats, Ints, Policy, Trajectory
from belated.validate import indices, integer, refuse

#: Episodes of a block, unless said otherwise: Python gets a word in after each, for progress, interruption and rows.
BLOCK = 256
#: Delays are drawn this many at a time; a checkpoint lies between two such draws, and no block goes beyond.
CHUNK = 4096
#: The blocks of a simulation begin with so many episodes and double while one takes less than so many seconds.
FIRST_BLOCK, BRISK = 32, 0.1
#: What compiled code looks at to tell which of several laws counts.
NOTHING, FIRST_ACTION, RETURN = range(3)
OUTCOMES: dict[type, int] = {DelayByAction: FIRST_ACTION, DelayByReward: RETURN}

KIND, VERSION = "belated-checkpoint", 1


class Journal(NamedTuple):
    """What is noted of every episode of a block."""

    start: Ints
    delay: Ints
    arrived: Ints
    value: Floats
    sampled_return: Floats


def simulate(
    environment: FiniteMDP,
    algorithm: Algorithm,
    delay: DelayLaw | OutcomeLaw,
    *,
    episodes: int,
    seed: int,
    record_every: int = 1,
    watch: Callable[[int], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
) -> pl.DataFrame:
    """Play `episodes` episodes and return one row for each, or for every `record_every`-th and the last.

    The columns are `episode`, `start` (the first state), `delay` (null: never arrives), `arrived` (trajectories that
    arrived just before this episode was planned), `value` (the exact value of the policy played, from that
    start), `optimal` (that of the policy that regret is counted against), `sampled_return` (the rewards that were
    seen) and `regret` (exact and cumulative, over all episodes so far, recorded or not). `watch` is called now and then
    with the number of episodes played since its last call.

    With a `checkpoint`, a file, the whole state of the run is written there about every `checkpoint_seconds`. If
    the file is there at the start, the run goes on from it and gives the same rows; at the end it is deleted.

    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> rows = simulate(RiverSwim(), DelayedPSVI(), Poisson(5), episodes=100, seed=0)
    >>> rows.columns
    ['episode', 'start', 'delay', 'arrived', 'value', 'optimal', 'sampled_return', 'regret']
    """
    simulation = Simulation(environment, algorithm, delay, episodes=episodes, seed=seed, record_every=record_every)
    file = None if checkpoint is None else Path(checkpoint)
    if file is not None and file.exists():
        simulation.restore(file)
        if watch is not None:
            watch(simulation.played)
    saved, block = time.monotonic(), FIRST_BLOCK
    while simulation.played < simulation.episodes:
        began = time.monotonic()
        played = simulation.advance(block)
        if time.monotonic() - began < BRISK:
            block = min(2 * block, CHUNK)
        if watch is not None:
            watch(played)
        if file is not None and simulation.at_checkpoint and time.monotonic() - saved >= checkpoint_seconds:
            simulation.save(file)
            saved = time.monotonic()
    rows = simulation.rows()
    if file is not None:
        file.unlink(missing_ok=True)
    return rows


class Simulation:
    """A run that is played block by block."""

    def __init__(
        self,
        environment: FiniteMDP,
        algorithm: Algorithm,
        delay: DelayLaw | OutcomeLaw,
        *,
        episodes: int,
        seed: int,
        record_every: int = 1,
    ) -> None:
        for name, value, kind, wanted in (
            ("environment", environment, FiniteMDP, "FiniteMDP"),
            ("algorithm", algorithm, Algorithm, "Algorithm"),
            ("delay", delay, DelayLaw | OutcomeLaw, "DelayLaw"),
        ):
            if not isinstance(value, kind) or isinstance(value, type):
                raise refuse(name, value, f"of type {wanted}")
        self.episodes = integer("episodes", episodes, at_least=1)
        self.record_every = integer("record_every", record_every, at_least=1)
        self.environment, self.delay = environment, delay
        self.seed = integer("seed", seed, at_least=0)
        if isinstance(delay, Fixed):
            delay.sample(stream(seed, "delay"), self.episodes)  # refuses a sequence that is too short
        if isinstance(delay, DelayByAction) and len(delay.laws) != environment.actions:
            raise refuse("delay.laws", len(delay.laws), f"one law for each of {environment.actions} actions")
        self.agent = algorithm.start(environment.problem)
        self.rngs = {name: stream(seed, name) for name in ("delay", "environment", "agent")}
        self.buffer: DelayBuffer[Trajectory] = DelayBuffer()
        self.post = make_post(2 * BLOCK, environment.horizon)
        self.delays = np.zeros((0, 1), np.int64)
        whole, real = (np.zeros((3, CHUNK), np.int64), np.zeros((2, CHUNK)))
        self.journal = Journal(whole[0], whole[1], whole[2], real[0], real[1])
        best = environment.comparator(self.episodes)
        variants = min(environment.variants, self.episodes)
        self.optimal = np.stack([environment.values(best, episode=k)[0] for k in range(variants)])
        self.played, self.regret, self.recorded = 0, 0.0, 0
        count = -(-self.episodes // self.record_every)
        self.columns: dict[str, npt.NDArray[Any]] = {
            **{name: np.zeros(count, np.int64) for name in ("episode", "start", "delay", "arrived")},
            **{name: np.zeros(count) for name in ("value", "optimal", "sampled_return", "regret")},
        }
        horizon, states = environment.horizon, environment.states
        self.scratch = (
            np.zeros((horizon, states), np.int64),
            np.zeros((horizon + 1, states)),
            np.zeros(horizon + 1, np.int64),
            np.zeros(horizon, np.int64),
            np.zeros(horizon),
        )

    @property
    def compiled(self) -> bool:
        """Whether the compiled block can be used."""
        known = isinstance(self.delay, DelayLaw) or type(self.delay) in OUTCOMES
        return isinstance(self.agent, Learner) and known

    @property
    def at_checkpoint(self) -> bool:
        """Whether the state can be saved now: between two draws of delays, and for agents of the library."""
        return self.compiled and self.played % CHUNK == 0

    def advance(self, episodes: int = BLOCK) -> int:
        """Play a block of at most so many `episodes`, and return how many it had."""
        first = self.played
        last = min(first + episodes, (first // CHUNK + 1) * CHUNK, self.episodes)
        if first % CHUNK == 0:
            self.delays = self._draw_delays(first, min(CHUNK, self.episodes - first))
        delays = self.delays[first % CHUNK :][: last - first]
        if self.compiled:
            assert isinstance(self.agent, Learner)
            self.post = with_room(self.post, last - first)
            play_compiled(
                self.agent.record,
                self.environment.world,
                self.post,
                self.journal,
                self.rngs["environment"],
                self.rngs["agent"],
                self.scratch,
                delays,
                OUTCOMES.get(type(self.delay), NOTHING),
                first,
                self.episodes,
            )
        else:
            self.play_in_python(delays)
        self._record(first, last)
        self.played = last
        return last - first

    def _draw_delays(self, first: int, count: int) -> Ints:
        """Return the delays of the next `count` episodes, shape (count, outcomes)."""
        rng = self.rngs["delay"]
        if isinstance(self.delay, Fixed):
            return self.delay.sample(rng, first + count)[first:, np.newaxis]
        drawn = self.delay.sample(rng, count)
        return drawn if drawn.ndim == 2 else drawn[:, np.newaxis]

    def _record(self, first: int, last: int) -> None:
        """Turn the journal of a block into rows."""
        episodes, noted = np.arange(first, last), self.journal
        start, value = noted.start[: last - first], noted.value[: last - first]
        optimal = self.optimal[episodes % len(self.optimal), start]
        # one running sum, in order: the same to the last bit however the run is cut into blocks
        regret = np.cumsum(np.concatenate([[self.regret], optimal - value]))[1:]
        self.regret = float(regret[-1])
        kept: slice | npt.NDArray[np.int64] = slice(0, last - first)
        if self.record_every > 1:
            kept = np.flatnonzero(((episodes + 1) % self.record_every == 0) | (episodes == self.episodes - 1))
        rows = slice(self.recorded, self.recorded + len(episodes[kept]))
        for name, values in {"episode": episodes, "optimal": optimal, "regret": regret, **noted._asdict()}.items():
            self.columns[name][rows] = values[kept]
        self.recorded = rows.stop

    def play_in_python(self, delays: Ints) -> None:
        """Play a block, asking the agent in Python."""
        environment, agent, agent_rng = self.environment, self.agent, self.rngs["agent"]
        shape = (environment.horizon, environment.states)
        journal = self.journal
        for k, delay in enumerate(delays):
            episode = self.played + k
            batch = [Feedback(origin, trajectory) for origin, trajectory in self.buffer.arrived(episode)]
            agent.learn(batch)
            start = environment.first_state(self.rngs["environment"], episode=episode)
            asked = getattr(agent, "plan_from", None)
            policy = agent.plan(agent_rng) if asked is None else asked(agent_rng, start)
            if not isinstance(policy, Policy):
                raise InvalidInputError(f"plan must return a Policy, got {type(policy).__name__}")
            policy = Policy(indices("the planned policy's actions", policy.actions, shape, environment.actions))
            played = environment.rollout(policy, self.rngs["environment"], episode=episode, start=start)
            which = self.delay.outcome(played) if isinstance(self.delay, OutcomeLaw) else 0
            late = int(delay[integer("the delay's outcome", which, at_least=0, at_most=len(delay) - 1)])
            if late < self.episodes - episode - 1:  # what arrives after the end need not be kept
                self.buffer.add(episode, late, played)
            journal.start[k] = start
            journal.delay[k] = late
            journal.arrived[k] = len(batch)
            journal.value[k] = environment.values(policy, episode=episode)[0, start]
            journal.sampled_return[k] = np.cumsum(played.rewards)[-1]  # in order, as the compiled loop adds

    def rows(self) -> pl.DataFrame:
        """Return what was recorded so far."""
        columns = {name: values[: self.recorded] for name, values in self.columns.items()}
        never = columns["delay"] == NEVER
        delay = pl.Series(np.where(never, 0, columns["delay"])).set(pl.Series(never), None)
        return pl.DataFrame({**columns, "delay": delay}).select(
            "episode", "start", "delay", "arrived", "value", "optimal", "sampled_return", "regret"
        )

    def _about(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, as plain values."""
        assert isinstance(self.agent, Learner)
        return {
            "agent": self.agent.settings.to_dict(),
            "environment": self.environment.describe(),
            "delay": self.delay.to_dict(),
            "episodes": self.episodes,
            "seed": self.seed,
            "record_every": self.record_every,
        }

    def save(self, path: Path) -> None:
        """Write the whole state to `path`."""
        assert isinstance(self.agent, Learner)
        header = {
            "about": self._about(),
            "played": self.played,
            "regret": self.regret.hex(),
            "rngs": {name: generator_state(rng) for name, rng in self.rngs.items()},
        }
        arrays = {
            **{f"memory.{name}": values for name, values in self.agent.memory().items()},
            **{f"post.{name}": values for name, values in self.post._asdict().items()},
            **{f"rows.{name}": values[: self.recorded] for name, values in self.columns.items()},
        }
        save_arrays(path, KIND, VERSION, header, arrays)

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; refuse the state of another run."""
        header, arrays = load_arrays(path, KIND, VERSION)
        if not isinstance(self.agent, Learner) or header.get("about") != self._about():
            raise InvalidInputError(
                f"{path} is the checkpoint of a run with other settings; use another file, or delete it to start afresh"
            )
        try:
            environment = self.environment
            post = checked_post(part_of(arrays, "post."), environment.horizon, environment.states, environment.actions)
            rows = {name: arrays[f"rows.{name}"] for name in self.columns}
            recorded = len(rows["episode"])
            for name, values in rows.items():
                self.columns[name][:recorded] = values
            rngs = {name: restore_generator(header["rngs"][name]) for name in self.rngs}
            played, regret = int(header["played"]), float.fromhex(header["regret"])
            self.agent.restore(part_of(arrays, "memory."))
            self.post, self.rngs, self.recorded = post, rngs, recorded
            self.played, self.regret = played, regret
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path} does not hold a usable checkpoint: {error}") from error


@entry_point
def play_compiled(
    record: Any,
    world: World,
    post: Post,
    journal: Journal,
    env_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    scratch: tuple[Ints, Floats, Ints, Ints, Floats],
    delays: Ints,
    outcome: int,
    first: int,
    total: int,
) -> None:
    """Play a block; all state lives in the arguments."""
    policy, values, states, actions, rewards = scratch
    for k in range(delays.shape[0]):
        episode = first + k
        arrived = 0
        while post.size[0] > 0 and post.heap[0, 0] <= episode:  # what has arrived, oldest first
            origin = post.heap[0, 1]
            slot = take_first(post)
            learn_kernel(record, origin, post.states[slot], post.actions[slot], post.rewards[slot])
            arrived += 1
        settle_kernel(record)
        states[0] = first_state(world, episode, env_rng)
        plan_kernel(record, agent_rng, states[0], policy)
        rollout(world, episode, policy, env_rng, states, actions, rewards)
        earned = 0.0
        for h in range(rewards.size):
            earned += rewards[h]
        which = 0
        if outcome == 1:  # FIRST_ACTION
            which = actions[0]
        elif outcome == 2 and earned > 0.0:  # RETURN
            which = 1
        delay = delays[k, which]
        if delay < total - episode - 1:  # what arrives after the end need not be kept
            send(post, episode + delay + 1, episode, states, actions, rewards)
        journal.start[k] = states[0]
        journal.delay[k] = delay
        journal.arrived[k] = arrived
        journal.value[k] = value_from(world, episode, policy, states[0], values)
        journal.sampled_return[k] = earned

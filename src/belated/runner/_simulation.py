"""One run: one agent, one environment, one distribution of delays, one seed; out come rows.

A run is played in blocks of episodes. A block is written twice: `play_in_python` asks an agent in Python and serves any
agent; `play_compiled` is the same for the library's own algorithms, compiled. Both draw the same random
numbers in the same order and give the same rows, bit for bit. All that a run holds is the agent, what is in flight, and
the rows that are recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from belated._kernels.jit import borrowed, entry_point
from belated._kernels.streams import stream
from belated._util.validate import indices, integer, real, refuse
from belated.agents._base import ALL, BATCH, Arrival, Learner, Record
from belated.delays import DelayBuffer, DelayDistribution, OutcomeDelays
from belated.delays._outcome import FIRST_ACTION, NOTHING, RETURN, next_delays
from belated.environments import FiniteMDP, GymEnvironment
from belated.environments._kernels import World, play_episode, start_episode, value_from
from belated.errors import InvalidInputError
from belated.runner._array_queue import Post, make_post, send, take_first, with_room
from belated.runner._callbacks import Callback, Watchers
from belated.runner._checkpoint import restore_checkpoint, save_checkpoint
from belated.runner._description import describe_run
from belated.runner._experiment import Run
from belated.runner._observer import Observed, shoulder
from belated.runner._parts import check_algorithm, check_delay, check_episodes
from belated.runner._rows import Journal, make_columns, make_journal, recorded, to_frame
from belated.types import Algorithm, Feedback, Floats, Ints, Policy, Trajectory

if TYPE_CHECKING:
    import polars as pl

#: Episodes of a block, unless said otherwise: Python gets a word in after each, for progress, interruption and rows.
BLOCK = 256
#: Delays are drawn this many at a time; a checkpoint lies between two such draws, and no block goes beyond.
CHUNK = 4096
#: The blocks of a simulation begin with so many episodes and double while one takes less than so many seconds.
FIRST_BLOCK, BRISK = 32, 0.1


def simulate(
    environment: FiniteMDP | GymEnvironment,
    algorithm: Algorithm,
    delay: DelayDistribution | OutcomeDelays,
    *,
    episodes: int,
    seed: int,
    record_every: int = 1,
    watch: Callable[[int], None] | None = None,
    observe: Callable[[Observed], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
    commit: Callable[[pl.DataFrame], None] | None = None,
    accept_old: bool = False,
    callbacks: Sequence[Callback] = (),
) -> pl.DataFrame:
    """Play `episodes` episodes and return one row for each, or for every `record_every`-th and the last.

    The columns are `episode`, `start` (the first state), `delay` (null: never arrives), `arrived` (trajectories that
    arrived just before this episode was planned), `value` (the exact value of the policy played, from that
    start), `optimal` (that of the policy that regret is counted against), `sampled_return` (the rewards that were
    seen) and `regret` (exact and cumulative, over all episodes so far, recorded or not). `watch` is called now and then
    with the number of episodes played since its last call, `observe` with every episode and the numbers behind its
    plan, which makes the run much slower.

    With a `checkpoint`, a file, the whole state of the run is written there about every `checkpoint_seconds`. If
    the file is there at the start, the run goes on from it and gives the same rows; that of another belated is refused
    unless `accept_old`. At the end `commit` is given the rows, to keep them, and only then the file is deleted.
    Each of `callbacks` sees the rows as they come (`belated.Callback`).

    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> rows = simulate(RiverSwim(), DelayedPSVI(), Poisson(5), episodes=100, seed=0)
    >>> rows.columns
    ['episode', 'start', 'delay', 'arrived', 'value', 'optimal', 'sampled_return', 'regret']
    """
    watchers = Watchers(callbacks)
    simulation = make_simulation(
        environment, algorithm, delay, episodes=episodes, seed=seed, record_every=record_every, observe=observe
    )
    pause = real("checkpoint_seconds", checkpoint_seconds, at_least=0)
    file = None if checkpoint is None else Path(checkpoint)
    if file is not None and file.exists():
        with suppress(FileNotFoundError):  # another process has just finished the same run
            simulation.restore(file, accept_old=accept_old)
    run = simulation.as_run()
    try:
        rows = _play(simulation, run, _blocks(simulation, file, pause), watch, watchers)
        if commit is not None:
            commit(rows)
        if file is not None:
            file.unlink(missing_ok=True)
        watchers.run(run, rows)
    finally:
        watchers.close()
    return rows


def _play(
    simulation: Simulation,
    run: Run,
    blocks: Iterator[int],
    watch: Callable[[int], None] | None,
    watchers: Watchers,
) -> pl.DataFrame:
    """Play all blocks, showing each to those who watch, and return the rows."""
    seen = 0
    for played in blocks:
        if watch is not None:
            watch(played)
        if watchers:
            watchers.block(run, simulation.rows(seen))
            seen = simulation.recorded
    return simulation.rows()


def _blocks(simulation: Simulation, file: Path | None, pause: float) -> Iterator[int]:
    """Play to the end and yield how many episodes each block had, first those of a checkpoint; save now and then."""
    if simulation.played:
        yield simulation.played
    saved, block = time.monotonic(), FIRST_BLOCK
    while simulation.played < simulation.episodes:
        began = time.monotonic()
        played = simulation.advance(block)
        if time.monotonic() - began < BRISK:
            block = min(2 * block, CHUNK)
        yield played
        if file is not None and simulation.at_checkpoint and time.monotonic() - saved >= pause:
            simulation.save(file)
            saved = time.monotonic()


def make_simulation(environment: FiniteMDP | GymEnvironment, *arguments: Any, **options: Any) -> Simulation:
    """Return a run, of the kind that goes with the environment."""
    if isinstance(environment, GymEnvironment):
        from belated.runner._sampled import SampledSimulation  # it builds on this module

        return SampledSimulation(environment, *arguments, **options)
    return Simulation(environment, *arguments, **options)


class Simulation:
    """A run that is played block by block."""

    chunk = CHUNK
    """Episodes between two places where the state can be saved."""

    def __init__(
        self,
        environment: FiniteMDP,
        algorithm: Algorithm,
        delay: DelayDistribution | OutcomeDelays,
        *,
        episodes: int,
        seed: int,
        record_every: int = 1,
        observe: Callable[[Observed], None] | None = None,
    ) -> None:
        if not isinstance(environment, FiniteMDP):
            raise refuse("environment", environment, "of type FiniteMDP or GymEnvironment")
        check_algorithm("algorithm", algorithm)
        if not isinstance(delay, DelayDistribution | OutcomeDelays):
            raise refuse("delay", delay, "of type DelayDistribution")
        self.episodes, self.record_every = check_episodes(episodes, record_every)
        self.seed = integer("seed", seed, at_least=0)
        check_delay(delay, environment, self.episodes)
        self.environment, self.algorithm, self.delay = environment, algorithm, delay
        self.outcome: int | None = (
            NOTHING if isinstance(delay, DelayDistribution) else vars(type(delay)).get("looks_at")
        )
        self.agent = algorithm.start(environment.problem)
        self.observe = observe
        self.shoulder = None if observe is None else shoulder(self.agent)
        self.rngs = {name: stream(seed, name) for name in ("delay", "environment", "agent")}
        self.buffer: DelayBuffer[Trajectory] = DelayBuffer()
        self.post = make_post(2 * BLOCK, environment.horizon)
        self.delays, self.distribution_state = np.zeros((0, 1), np.int64), None
        self.journal = make_journal(CHUNK)
        best = environment.comparator(self.episodes)
        variants = min(environment.variants, self.episodes)
        self.optimal = np.stack([environment.values(best, episode=k)[0] for k in range(variants)])
        self.played, self.regret, self.recorded = 0, 0.0, 0
        self.columns = make_columns(-(-self.episodes // self.record_every))
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
        return isinstance(self.agent, Learner) and self.outcome is not None and self.observe is None

    @property
    def at_checkpoint(self) -> bool:
        """Whether the state can be saved now: between two draws of delays, and for agents of the library."""
        return self.compiled and self.played % CHUNK == 0

    def as_run(self) -> Run:
        """Return what is played, under labels made from its parts."""
        labels = ("simulate", self.environment.label, type(self.algorithm).__name__, self.delay.label)
        parts = (self.environment, self.algorithm, self.delay)
        return Run(*labels, *parts, self.episodes, self.seed, self.record_every)

    def describe(self) -> dict[str, Any]:
        """Return everything that the rows depend on, as plain values."""
        return describe_run(self.environment, self.algorithm, self.delay, self.episodes, self.seed, self.record_every)

    def save(self, path: Path) -> None:
        """Write the whole state to `path`."""
        save_checkpoint(self, path)

    def restore(self, path: Path, *, accept_old: bool = False) -> None:
        """Go on from what `save` wrote; refuse the state of another run, and of another belated unless `accept_old`."""
        restore_checkpoint(self, path, accept_old=accept_old)

    def advance(self, episodes: int = BLOCK) -> int:
        """Play a block of at most so many `episodes`, and return how many it had."""
        first = self.played
        last = min(first + episodes, (first // CHUNK + 1) * CHUNK, self.episodes)
        if first % CHUNK == 0:
            self.delays = self._draw_delays(first, min(CHUNK, self.episodes - first))
        delays = self.delays[first % CHUNK :][: last - first]
        if self.compiled:
            assert isinstance(self.agent, Learner)
            assert self.outcome is not None
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
                self.outcome,
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
        drawn, self.distribution_state = next_delays(
            self.delay, self.rngs["delay"], count, first, self.distribution_state
        )
        return drawn if drawn.ndim == 2 else drawn[:, np.newaxis]

    def optimal_of(self, episodes: Ints, starts: Ints) -> Floats:
        """Return the value that the regret of each of `episodes` is counted against, from its first state."""
        found: Floats = self.optimal[episodes % len(self.optimal), starts]
        return found

    def _record(self, first: int, last: int) -> None:
        """Turn the journal of a block into rows."""
        episodes, noted = np.arange(first, last), self.journal
        optimal = self.optimal_of(episodes, noted.start[: last - first])
        # one running sum, in order: the same to the last bit however the run is cut into blocks
        regret = np.cumsum(np.concatenate([[self.regret], optimal - noted.value[: last - first]]))[1:]
        self.regret = float(regret[-1])
        kept = recorded(episodes, self.episodes - 1, self.record_every) - first
        rows = slice(self.recorded, self.recorded + kept.size)
        for name, values in {"episode": episodes, "optimal": optimal, "regret": regret, **noted._asdict()}.items():
            self.columns[name][rows] = values[kept]
        self.recorded = rows.stop

    def play_in_python(self, delays: Ints) -> None:
        """Play a block, asking the agent in Python."""
        environment, rng, journal = self.environment, self.rngs["environment"], self.journal
        for k, delay in enumerate(delays):
            episode = self.played + k
            batch = [Feedback(origin, trajectory) for origin, trajectory in self.buffer.arrived(episode)]
            self.agent.learn(batch)
            start = environment.first_state(rng, episode=episode)
            seen = None
            if self.shoulder is not None:
                assert isinstance(self.agent, Learner)
                seen = self.shoulder.plan(self.agent, self.rngs["agent"])
            policy = self._ask(start)
            played = environment.rollout(policy, rng, episode=episode, start=start)
            if self.observe is not None:
                self.observe(Observed(episode, start, policy, played, self.agent, seen))
            which = self.delay.outcome(played) if isinstance(self.delay, OutcomeDelays) else 0
            late = int(delay[integer("the delay's outcome", which, at_least=0, at_most=len(delay) - 1)])
            if late < self.episodes - episode - 1:  # what arrives after the end need not be kept
                self.buffer.add(episode, late, played)
            journal.start[k] = start
            journal.delay[k] = late
            journal.arrived[k] = len(batch)
            journal.value[k] = environment.values(policy, episode=episode)[0, start]
            journal.sampled_return[k] = np.cumsum(played.rewards)[-1]  # in order, as the compiled loop adds

    def _ask(self, start: int) -> Policy:
        """Return the agent's policy of an episode that begins in `start`, refusing what is not one."""
        asked, rng = getattr(self.agent, "plan_from", None), self.rngs["agent"]
        policy = self.agent.plan(rng) if asked is None else asked(rng, start)
        if not isinstance(policy, Policy):
            raise InvalidInputError(f"plan must return a Policy, got {type(policy).__name__}")
        shape = (self.environment.horizon, self.environment.states)
        return Policy(indices("the planned policy's actions", policy.actions, shape, self.environment.actions))

    def rows(self, first: int = 0) -> pl.DataFrame:
        """Return what was recorded so far, from row `first` on."""
        return to_frame({name: values[first : self.recorded] for name, values in self.columns.items()})


@entry_point
def play_compiled(
    record: Record,
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
    record, world, post, journal = borrowed(record), borrowed(world), borrowed(post), borrowed(journal)
    delays = borrowed(delays)
    policy, values, states, actions, rewards = borrowed(scratch)
    for k in range(delays.shape[0]):
        episode = first + k
        arrived, learned = 0, BATCH
        while learned == BATCH:
            learned = 0
            while learned < BATCH and post.size[0] > 0 and post.heap[0, 0] <= episode:  # has arrived, oldest first
                origin = post.heap[0, 1]
                slot = take_first(post)
                record.learn(Arrival(origin, 0, post.states[slot], post.actions[slot], post.rewards[slot], False, ALL))
                learned += 1
            record.settle()
            arrived += learned
        states[0] = start_episode(world, episode, env_rng)
        record.plan(agent_rng, states[0], policy)
        play_episode(world, episode, policy, env_rng, states, actions, rewards)
        earned = 0.0
        for h in range(rewards.size):
            earned += rewards[h]
        which = 0
        if outcome == FIRST_ACTION:
            which = actions[0]
        elif outcome == RETURN and earned > 0.0:
            which = 1
        delay = delays[k, which]
        if delay < total - episode - 1:  # what arrives after the end need not be kept
            send(post, episode + delay + 1, episode, states, actions, rewards)
        journal.start[k] = states[0]
        journal.delay[k] = delay
        journal.arrived[k] = arrived
        journal.value[k] = value_from(world, episode, policy, states[0], values)
        journal.sampled_return[k] = earned

"""One run: one agent, one environment, one delay distribution, one seed; out come rows.

A run is played in blocks of episodes. Tables and simulators differ only in their `Stage`: how an episode is played and
whether values are known. The block is written twice: `play_in_python` asks an agent in Python and serves any agent;
`play_compiled` is the same loop, compiled, for the library's agents on tables. Both draw the same random numbers in the
same order and give the same rows, bit for bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from belated._kernels.jit import borrowed, entry_point
from belated._kernels.streams import stream
from belated._util.validate import indices, integer, real, refuse
from belated.agents._base import ALL, BATCH, Arrival, Learner, Record, learn, plan, settle
from belated.delays import DelayDistribution, FeedbackQueue, OutcomeDelays
from belated.delays._outcome import FIRST_ACTION, NOTHING, RETURN, next_delays
from belated.environments import FiniteMDP, GymEnvironment
from belated.environments._kernels import World, play_episode, start_episode, value_from
from belated.environments._play import play as play_policy
from belated.errors import InvalidInputError
from belated.runner._array_queue import Post, make_post, most_at_once, send, take_first, with_room
from belated.runner._callbacks import Callback, Watchers
from belated.runner._checkpoint import restore_checkpoint, save_checkpoint
from belated.runner._experiment import Run
from belated.runner._observer import Observed, shoulder
from belated.runner._parts import table_for
from belated.runner._rows import Journal, make_columns, make_journal, recorded, to_frame
from belated.types import (
    Agent,
    Algorithm,
    Environment,
    Feedback,
    Floats,
    Ints,
    PlansFromStart,
    Policy,
    Problem,
    Savable,
    TablePolicy,
    TableProblem,
    Trajectory,
)

if TYPE_CHECKING:
    import polars as pl

#: Episodes of a block, unless said otherwise. Control returns to Python after each block.
BLOCK = 256
#: Delays are drawn this many at a time, and no block goes beyond.
CHUNK = 4096
#: The blocks of a simulation begin with so many episodes and double while one takes less than so many seconds.
FIRST_BLOCK, BRISK = 32, 0.1


def simulate(
    environment: Environment,
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
    callbacks: Sequence[Callback] = (),
) -> pl.DataFrame:
    """Play `episodes` episodes and return one row for each, or for every `record_every`-th and the last.

    The columns are `episode`, `start` (the first state), `delay` (null: never arrives), `arrived` (trajectories that
    arrived just before this episode was planned), `value` (the exact value of the policy played, from that
    start), `optimal` (that of the policy that regret is counted against), `sampled_return` (the sum of the observed
    rewards) and `regret` (exact and cumulative, over all episodes so far, recorded or not); what a simulator does not
    know is null. `watch` is called now and then with the number of episodes played since its last call, `observe` with
    every episode and the numbers behind its plan, which makes the run much slower.

    With a `checkpoint`, a file, the whole state of the run is written there about every `checkpoint_seconds`. If
    the file is there at the start, the run goes on from it and gives the same rows; that of another belated is
    rejected. At the end `commit` is given the rows, to keep them, and only then the file is deleted.
    Each of `callbacks` sees the rows as they come (`belated.Callback`).

    >>> from belated import DelayedPSVI, Poisson, RiverSwim
    >>> rows = simulate(RiverSwim(), DelayedPSVI(), Poisson(5), episodes=100, seed=0)
    >>> rows.columns
    ['episode', 'start', 'delay', 'arrived', 'value', 'optimal', 'sampled_return', 'regret']
    """
    run = Run(environment, algorithm, delay, episodes, seed, record_every)
    with closing(Watchers(callbacks)) as watchers:
        return play(
            run,
            watch=watch,
            observe=observe,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
            commit=commit,
            callbacks=watchers,
        )


def play(
    run: Run,
    *,
    watch: Callable[[int], None] | None = None,
    observe: Callable[[Observed], None] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
    commit: Callable[[pl.DataFrame], None] | None = None,
    callbacks: Watchers | None = None,
) -> pl.DataFrame:
    """Play `run` and return its rows; the options are those of `simulate`."""
    simulation = Simulation(run, observe=observe)
    pause = real("checkpoint_seconds", checkpoint_seconds, at_least=0)
    file = None if checkpoint is None else Path(checkpoint)
    if file is not None and file.exists():
        with suppress(FileNotFoundError):  # another process has just finished the same run
            simulation.restore(file)
    rows = _play(simulation, run, _blocks(simulation, file, pause), watch, callbacks)
    if commit is not None:
        commit(rows)
    if file is not None:
        file.unlink(missing_ok=True)
    if callbacks:
        callbacks.run(run, rows)
    return rows


def _play(
    simulation: Simulation,
    run: Run,
    blocks: Iterator[int],
    watch: Callable[[int], None] | None,
    watchers: Watchers | None,
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
        taken = time.monotonic() - began
        block = min(2 * block, CHUNK) if taken < BRISK else max(block // 2, 1) if taken > 10 * BRISK else block
        yield played
        if file is not None and simulation.can_be_saved and time.monotonic() - saved >= pause:
            simulation.save(file)
            saved = time.monotonic()


class Played(NamedTuple):
    """One episode as the rows know it."""

    trajectory: Trajectory
    """What the agent will learn from."""
    start: int
    value: float
    """The exact value of the policy from that start; nan where nobody knows it."""
    earned: float


class Stage(Protocol):
    """How an environment is played and what is known of its values."""

    @property
    def problem(self) -> Problem: ...

    def begin(self, episode: int, rng: np.random.Generator) -> int | None:
        """Return the first state of `episode` where agents may be told it before they plan."""

    def play(self, policy: Policy, episode: int, start: int | None, rng: np.random.Generator) -> Played: ...

    def optimal(self, episodes: Ints, starts: Ints) -> Floats:
        """Return the value that the regret of each of `episodes` is counted against; nan where nobody knows it."""


class TableStage:
    """A `FiniteMDP`: values are exact."""

    def __init__(self, mdp: FiniteMDP, episodes: int) -> None:
        self.mdp, self.problem = mdp, mdp.problem
        best, variants = mdp.comparator(episodes), min(mdp.variants, episodes)
        self._optimal = np.stack([mdp.values(best, episode=k)[0] for k in range(variants)])

    def begin(self, episode: int, rng: np.random.Generator) -> int:
        return self.mdp.first_state(rng, episode=episode)

    def play(self, policy: Policy, episode: int, start: int | None, rng: np.random.Generator) -> Played:
        assert start is not None
        table = as_table(policy, self.problem)
        trajectory = self.mdp.rollout(table, rng, episode=episode, start=start)
        value = float(self.mdp.values(table, episode=episode)[0, start])
        return Played(trajectory, start, value, _total(trajectory.rewards))

    def optimal(self, episodes: Ints, starts: Ints) -> Floats:
        found: Floats = self._optimal[episodes % len(self._optimal), starts]
        return found


class SimulatorStage:
    """Any other environment. Values are exact where it has a table and the agent plays on that."""

    def __init__(self, environment: Environment, algorithm: Algorithm, seed: int) -> None:
        self.environment, self._seed = environment, seed
        self._table = table_for(environment, algorithm)
        self.problem: Problem = environment.problem if self._table is None else self._table.problem
        if self._table is not None:
            assert isinstance(environment, GymEnvironment)
            self._best = environment.in_rewards(self._table.optimal_values())[0]

    def begin(self, episode: int, rng: np.random.Generator) -> None:
        return None

    def play(self, policy: Policy, episode: int, start: int | None, rng: np.random.Generator) -> Played:
        if self._table is None:
            played = play_policy(self.environment, policy, seed=self._seed, episode=episode)
            return Played(played, 0, float("nan"), _total(played.rewards))
        assert isinstance(self.environment, GymEnvironment)
        table = as_table(policy, self._table.problem)
        played = play_policy(self.environment, _OneHotPolicy(table), seed=self._seed, episode=episode)
        first = int(played.states[0].indices[0])
        value = float(self.environment.in_rewards(self._table.values(table))[0, first])
        return Played(self.environment.tabulated(played), first, value, _total(played.rewards))

    def optimal(self, episodes: Ints, starts: Ints) -> Floats:
        if self._table is None:
            return np.full(len(episodes), np.nan)
        found: Floats = self._best[starts]
        return found


class _OneHotPolicy:
    """A table's policy in a simulator with one-hot features."""

    def __init__(self, policy: TablePolicy) -> None:
        self._policy = policy

    def act(self, step: int, state: Any) -> int:
        return self._policy.act(step, int(state.indices[0]))


def _total(rewards: Floats) -> float:
    return float(np.cumsum(rewards)[-1])  # in order, as the compiled loop adds


def as_table(policy: Policy, problem: TableProblem) -> TablePolicy:
    """Return any policy on a table as `actions[h, s]`; raise `InvalidInputError` if it is none."""
    if not isinstance(policy, TablePolicy):
        if not callable(getattr(policy, "act", None)):
            raise InvalidInputError(f"plan must return a policy with act(step, state), got {type(policy).__name__}")
        chosen = [[policy.act(h, s) for s in range(problem.states)] for h in range(problem.horizon)]
        policy = TablePolicy(np.array(chosen))
    shape = (problem.horizon, problem.states)
    return TablePolicy(indices("the planned policy's actions", policy.actions, shape, problem.actions))


class Simulation:
    """A run that is played block by block."""

    def __init__(self, run: Run, *, observe: Callable[[Observed], None] | None = None) -> None:
        self.run, self.episodes, self.delay, environment = run, run.episodes, run.delay, run.environment
        self.stage: Stage = (
            TableStage(environment, run.episodes)
            if isinstance(environment, FiniteMDP)
            else SimulatorStage(environment, run.algorithm, run.seed)
        )
        self.outcome: int | None = (
            NOTHING if isinstance(run.delay, DelayDistribution) else vars(type(run.delay)).get("looks_at")
        )
        self.agent: Agent = run.algorithm.start(self.stage.problem)
        if observe is not None and not isinstance(environment, FiniteMDP):
            raise refuse("observe", observe, "None in a simulator")
        self.observe = observe
        self.shoulder = None if observe is None else shoulder(self.agent)
        self.rngs = {name: stream(run.seed, name) for name in ("delay", "environment", "agent")}
        self.queue: FeedbackQueue[Trajectory] = FeedbackQueue()
        horizon = self.stage.problem.horizon
        self.post = make_post(2 * BLOCK, horizon)
        self.delays, self.distribution_state = np.zeros((0, 1), np.int64), None
        self.journal = make_journal(CHUNK)
        self.played, self.regret, self.recorded = 0, 0.0, 0
        self.columns = make_columns(run.rows)
        states = self.stage.mdp.states if isinstance(self.stage, TableStage) else 0
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
        return (
            isinstance(self.stage, TableStage)
            and isinstance(self.agent, Learner)
            and self.outcome is not None
            and self.observe is None
        )

    @property
    def can_be_saved(self) -> bool:
        """Whether the state of the agent can be saved."""
        return isinstance(self.agent, Savable) and self.observe is None

    def save(self, path: Path) -> None:
        """Write the whole state to `path`."""
        save_checkpoint(self, path)

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; raise an error for the state of another run, or of another belated."""
        restore_checkpoint(self, path)

    def advance(self, episodes: int = BLOCK) -> int:
        """Play a block of at most so many `episodes`, and return how many it had."""
        first = self.played
        last = min(first + episodes, (first // CHUNK + 1) * CHUNK, self.episodes)
        if first % CHUNK == 0:
            self.delays = self._draw_delays(first, min(CHUNK, self.episodes - first))
        delays = self.delays[first % CHUNK :][: last - first]
        if self.compiled:
            assert isinstance(self.agent, Learner)
            assert isinstance(self.stage, TableStage)
            assert self.outcome is not None
            self.post = with_room(self.post, last - first)
            play_compiled(
                self.agent.record_for(most_at_once(self.post, delays, first)),
                self.stage.mdp.world,
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
            with threadpool_limits(1):  # BLAS on more cores rounds differently, and is slower on small matrices
                for k, delay in enumerate(delays):
                    self._play_episode(k, delay)
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
        return self.stage.optimal(episodes, starts)

    def _record(self, first: int, last: int) -> None:
        """Turn the journal of a block into rows."""
        episodes, noted = np.arange(first, last), self.journal
        optimal = self.optimal_of(episodes, noted.start[: last - first])
        # one running sum, in order: the same to the last bit however the run is cut into blocks
        regret = np.cumsum(np.concatenate([[self.regret], optimal - noted.value[: last - first]]))[1:]
        self.regret = float(regret[-1])
        kept = recorded(episodes, self.episodes - 1, self.run.record_every) - first
        rows = slice(self.recorded, self.recorded + kept.size)
        for name, values in {"episode": episodes, "optimal": optimal, "regret": regret, **noted._asdict()}.items():
            self.columns[name][rows] = values[kept]
        self.recorded = rows.stop

    def _play_episode(self, k: int, delays: Ints) -> None:
        """Play number `k` of a block, asking the agent in Python; `delays` has one for each outcome."""
        episode, stage, journal, rng = self.played + k, self.stage, self.journal, self.rngs["environment"]
        batch = [Feedback(origin, trajectory) for origin, trajectory in self.queue.arrived(episode)]
        self.agent.learn(batch)
        start = stage.begin(episode, rng)
        seen = None
        if self.shoulder is not None:
            assert isinstance(self.agent, Learner)
            seen = self.shoulder.plan(self.agent, self.rngs["agent"])
        if start is not None and isinstance(self.agent, PlansFromStart):
            policy: Policy = self.agent.plan_from(self.rngs["agent"], start)
        else:
            policy = self.agent.plan(self.rngs["agent"])
        if not callable(getattr(policy, "act", None)):
            raise InvalidInputError(f"plan must return a policy with act(step, state), got {type(policy).__name__}")
        played = stage.play(policy, episode, start, rng)
        if self.observe is not None:
            assert isinstance(policy, TablePolicy)
            self.observe(Observed(episode, played.start, policy, played.trajectory, self.agent, seen))
        which = self.delay.outcome(played.trajectory) if isinstance(self.delay, OutcomeDelays) else 0
        late = int(delays[integer("the delay's outcome", which, at_least=0, at_most=len(delays) - 1)])
        if late < self.episodes - episode - 1:  # what arrives after the end need not be kept
            self.queue.add(episode, late, played.trajectory)
        journal.start[k] = played.start
        journal.delay[k] = late
        journal.arrived[k] = len(batch)
        journal.value[k] = played.value
        journal.sampled_return[k] = played.earned

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
                late = Arrival(origin, 0, post.states[slot], post.actions[slot], post.rewards[slot], False, ALL)
                learn(record, late)
                learned += 1
            settle(record)
            arrived += learned
        states[0] = start_episode(world, episode, env_rng)
        plan(record, agent_rng, states[0], policy)
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

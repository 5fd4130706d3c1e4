"""Playing one run: an agent, an environment, a delay distribution and a seed give rows.

A run is played in blocks of episodes. Tables and simulators differ only in their `Stage`: how an episode is played and
whether values are known. There are two implementations of a block: a loop in Python for any agent, and `play_compiled`,
the same loop compiled, for built-in agents on tables. Both draw the same random numbers in the same order and give the
same rows, bit for bit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from belated._kernels.jit import borrowed, entry_point
from belated._kernels.streams import generator_state, restore_generator, stream
from belated._util.files import load_arrays, save_arrays
from belated._util.validate import indices, integer, real, refuse
from belated.agents._base import ALL, BATCH, Arrival, Learner, Record, learn, plan, settle
from belated.agents._wrapper import part_of
from belated.delays import NEVER, DelayDistribution, FeedbackQueue, OutcomeDelays
from belated.delays._outcome import FIRST_ACTION, NOTHING, RETURN, next_delays
from belated.environments import FiniteMDP, GymEnvironment
from belated.environments._kernels import World, play_episode, start_episode, value_from
from belated.environments._play import play as play_policy
from belated.environments._trial import Trial
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.runner._array_queue import ArrayQueue, checked_array_queue, make_array_queue, send, take_first, with_room
from belated.runner._callbacks import Callback, Watchers
from belated.runner._experiment import Run, check_description, table_for, where
from belated.runner._rows import BlockRows, check_rows, make_block_rows, make_columns, recorded, to_frame, value_bounds
from belated.runner._trials import Report, ReportQueue, drawn, play_trial
from belated.types import (
    PARTS,
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
    SimulatorProblem,
    SparseRows,
    SparseVector,
    TablePolicy,
    TableProblem,
    Trajectory,
)

if TYPE_CHECKING:
    import polars as pl


KIND, VERSION = "belated-checkpoint", 3
Arrays = dict[str, npt.NDArray[Any]]
#: Default number of episodes of a block. Control returns to Python after each block.
BLOCK = 256
#: Delays are drawn in chunks of this size, and no block crosses a chunk.
CHUNK = 4096
#: The first block has this many episodes; blocks double while one takes less than this many seconds.
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

    With a `checkpoint`, a file, the whole state of the run is written there about every `checkpoint_seconds`. If the
    file exists at the start, the run resumes from it and gives the same rows; a file from another version of belated is
    rejected. At the end `commit` is called with the rows, to store them, and only then the file is deleted. The
    `callbacks` (`belated.Callback`) observe the rows as they are produced.

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
    seen = 0
    for played in _blocks(simulation, file, pause):
        if watch is not None:
            watch(played)
        if callbacks:
            callbacks.block(run, simulation.rows(seen))
            seen = simulation.recorded
    rows = simulation.rows()
    if commit is not None:
        commit(rows)
    if file is not None:
        file.unlink(missing_ok=True)
    if callbacks:
        callbacks.run(run, rows)
    return rows


def _blocks(simulation: Simulation, file: Path | None, pause: float) -> Iterator[int]:
    """Play to the end and yield the number of episodes of each block, first those of a checkpoint; save regularly."""
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
    """One played episode."""

    trajectory: Trajectory
    """The feedback for the agent."""
    seen: Trajectory
    """The trajectory as played, on which the delay may depend, with the environment's own rewards."""
    start: int
    value: float
    """The exact value of the policy from its first state; nan if unknown."""
    earned: float
    reports: list[Report] | None = None
    """The reports about a patient, each with its own time; None if the trajectory arrives as a whole."""


class Stage(Protocol):
    """How an environment is played, and whether its values are known."""

    @property
    def problem(self) -> Problem: ...

    def begin(self, episode: int, rng: np.random.Generator) -> int | None:
        """Return the first state of `episode` if agents may know it before they plan, else None."""

    def play(self, policy: Policy, episode: int, start: int | None, rng: np.random.Generator) -> Played: ...

    def optimal(self, episodes: Ints, starts: Ints) -> Floats:
        """Return the reference value for the regret of each of `episodes`; nan if unknown."""


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
        return Played(trajectory, trajectory, start, value, _total(trajectory.rewards))

    def optimal(self, episodes: Ints, starts: Ints) -> Floats:
        found: Floats = self._optimal[episodes % len(self._optimal), starts]
        return found


class TrialStage(TableStage):
    """A `Trial`: reports about a patient have their own delays."""

    mdp: Trial

    def play(self, policy: Policy, episode: int, start: int | None, rng: np.random.Generator) -> Played:
        assert start is not None
        table = as_table(policy, self.problem)
        course = drawn(self.mdp, table, episode, start, rng)
        action = table.act(0, start)
        whole = Trajectory(np.array([start, 0]), np.array([action]), np.array([course.reward]))
        return Played(whole, whole, start, float(self.mdp.rewards[0, start, action]), course.reward, course.reports)


class SimulatorStage:
    """Any other environment. Values are exact if it has a table and the agent plays on it."""

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
            return Played(played, played, 0, float("nan"), _total(played.rewards))
        assert isinstance(self.environment, GymEnvironment)
        table = as_table(policy, self._table.problem)
        played = play_policy(self.environment, _OneHotPolicy(table), seed=self._seed, episode=episode)
        first = int(played.states[0].indices[0])
        value = float(self.environment.in_rewards(self._table.values(table))[0, first])
        return Played(self.environment.tabulated(played), played, first, value, _total(played.rewards))

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
    return float(np.cumsum(rewards)[-1])  # in order, like the compiled loop


def as_table(policy: Policy, problem: TableProblem) -> TablePolicy:
    """Return any policy on a table as `actions[h, s]`."""
    if not isinstance(policy, TablePolicy):
        chosen = [[policy.act(h, s) for s in range(problem.states)] for h in range(problem.horizon)]
        policy = TablePolicy(np.array(chosen))
    shape = (problem.horizon, problem.states)
    return TablePolicy(indices("the planned policy's actions", policy.actions, shape, problem.actions))


class Simulation:
    """A run that is played block by block."""

    def __init__(self, run: Run, *, observe: Callable[[Observed], None] | None = None) -> None:
        self.run, self.episodes, self.delay, environment = run, run.episodes, run.delay, run.environment
        self.stage: Stage = (
            TrialStage(environment, run.episodes)
            if isinstance(environment, Trial)
            else TableStage(environment, run.episodes)
            if isinstance(environment, FiniteMDP) and where(run.algorithm) != "steps"
            else SimulatorStage(environment, run.algorithm, run.seed)
        )
        self.outcome: int | None = (
            NOTHING if isinstance(run.delay, DelayDistribution) else vars(type(run.delay)).get("looks_at")
        )
        self.agent: Agent = run.algorithm.start(self.stage.problem)
        if observe is not None and not isinstance(environment, FiniteMDP):
            raise refuse("observe", observe, "None in a simulator")
        self.observe = observe
        self.plan_observer = None if observe is None else plan_observer(self.agent)
        self.rngs = {name: stream(run.seed, name) for name in ("delay", "environment", "agent")}
        self.queue: FeedbackQueue[Trajectory] = FeedbackQueue()
        self.reports = ReportQueue()
        self.ended = np.zeros(run.episodes if isinstance(environment, Trial) else 0, np.int64)
        horizon = self.stage.problem.horizon
        self.array_queue = make_array_queue(2 * BLOCK, horizon)
        self.delays, self.distribution_state = np.zeros((0, 1), np.int64), None
        self.block_rows = make_block_rows(CHUNK)
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
        """Whether the compiled loop is used."""
        return (
            isinstance(self.stage, TableStage)
            and isinstance(self.agent, Learner)
            and self.outcome is not None
            and self.observe is None
        )

    @property
    def can_be_saved(self) -> bool:
        return isinstance(self.agent, Savable) and self.observe is None and not isinstance(self.stage, TrialStage)

    def save(self, path: Path) -> None:
        """Write the whole state to `path`, for an agent that can be saved."""
        agent = self.agent
        assert isinstance(agent, Savable)
        header = {
            "about": self.run.describe(),
            "played": self.played,
            "regret": self.regret.hex(),
            "rngs": {name: generator_state(rng) for name, rng in self.rngs.items()},
            "distribution": self.distribution_state,
        }
        queue: Arrays = dict(self.array_queue._asdict()) if self.compiled else pack(self.queue)
        arrays = {
            **{f"memory.{name}": values for name, values in agent.memory().items()},
            **{f"queue.{name}": values for name, values in queue.items()},
            **{f"rows.{name}": values[: self.recorded] for name, values in self.columns.items()},
            "delays": self.delays,
        }
        save_arrays(path, KIND, VERSION, header, arrays)

    def restore(self, path: Path) -> None:
        """Resume from what `save` wrote; an invalid file changes nothing.

        The state of another run, or of another version of belated, is rejected.
        """
        try:
            header, arrays = load_arrays(path, KIND, VERSION)
        except DamagedFileError as error:
            raise DamagedFileError(f"{error}; delete it to restart the run") from None
        agent, problem = self.agent, self.stage.problem
        if not isinstance(agent, Savable):
            raise InvalidInputError(f"{path} is a checkpoint, but agents of this kind cannot resume; delete it")
        try:
            about = dict(header["about"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(f"{path} does not contain a valid checkpoint: {error}") from None
        check_description(str(path), about, self.run.describe())
        try:
            played = integer("played", header["played"], at_least=1, at_most=self.episodes)
            known = isinstance(self.run.environment, FiniteMDP)
            regret = real("regret", float.fromhex(header["regret"])) if known else float.fromhex(header["regret"])
            rows = part_of(arrays, "rows.")
            check_rows(rows, self.run.environment, self.episodes, self.run.record_every, played)
            if known:
                _check_sums(self, rows, played, regret)
            delays = arrays["delays"]
            indices("delays", delays, self.shape_of_delays(played), NEVER + 1)
            given = part_of(arrays, "queue.")
            array_queue, queue = self.array_queue, self.queue
            if self.compiled and isinstance(problem, TableProblem):
                array_queue = checked_array_queue(given, problem.horizon, problem.states, problem.actions)
                heap = array_queue.heap[: array_queue.size[0]]
            else:
                queue, heap = unpack(given, problem, played)
            _check_in_flight(self, heap, rows, played)
            rngs = {name: restore_generator(header["rngs"][name]) for name in self.rngs}
            distribution_state = header.get("distribution")
            if played < self.episodes:  # a distribution that cannot resume from its state raises now
                next_delays(self.delay, restore_generator(header["rngs"]["delay"]), 1, played, distribution_state)
            agent.restore(part_of(arrays, "memory."))
        except (BelatedError, KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
            raise DamagedFileError(
                f"{path} does not contain a valid checkpoint: {error}; delete it to restart the run"
            ) from error
        recorded = len(rows["episode"])
        for name, values in rows.items():
            self.columns[name][:recorded] = values
        self.array_queue, self.queue, self.rngs = array_queue, queue, rngs
        self.delays, self.distribution_state = np.array(delays), distribution_state
        self.played, self.regret, self.recorded = played, regret, recorded

    def advance(self, episodes: int = BLOCK) -> int:
        """Play a block of at most `episodes` episodes, and return their number."""
        first = self.played
        last = min(first + episodes, (first // CHUNK + 1) * CHUNK, self.episodes)
        if first % CHUNK == 0:
            self.delays = self._draw_delays(first, min(CHUNK, self.episodes - first))
        delays = self.delays[first % CHUNK :][: last - first]
        if self.compiled and isinstance(self.stage, TrialStage):
            assert isinstance(self.agent, Learner)
            self.array_queue = with_room(self.array_queue, (last - first) * self.stage.mdp.courses.ages.shape[1])
            play_trial(
                self.agent.record,
                self.stage.mdp.courses,
                self.array_queue,
                self.block_rows,
                self.ended,
                self.rngs["environment"],
                self.rngs["agent"],
                self.scratch,
                delays,
                self.stage.mdp.told,
                first,
                self.episodes,
            )
        elif self.compiled:
            assert isinstance(self.agent, Learner)
            assert isinstance(self.stage, TableStage)
            assert self.outcome is not None
            self.array_queue = with_room(self.array_queue, last - first)
            play_compiled(
                self.agent.record,
                self.stage.mdp.world,
                self.array_queue,
                self.block_rows,
                self.rngs["environment"],
                self.rngs["agent"],
                self.scratch,
                delays,
                self.outcome,
                first,
                self.episodes,
            )
        else:
            with threadpool_limits(1):  # more BLAS threads round differently, and are slower on small matrices
                for k, delay in enumerate(delays):
                    self._play_episode(k, delay)
        self._record(first, last)
        self.played = last
        return last - first

    def _draw_delays(self, first: int, count: int) -> Ints:
        drawn, self.distribution_state = next_delays(
            self.delay, self.rngs["delay"], count, first, self.distribution_state
        )
        return drawn if drawn.ndim == 2 else drawn[:, np.newaxis]

    def shape_of_delays(self, played: int) -> tuple[int, int]:
        """Return the shape of `delays` after `played` episodes."""
        outcomes = 1 if isinstance(self.delay, DelayDistribution) else len(self.delay.distributions_by_outcome)
        return min(CHUNK, self.episodes - (played - 1) // CHUNK * CHUNK), outcomes

    def _record(self, first: int, last: int) -> None:
        episodes, noted = np.arange(first, last), self.block_rows
        optimal = self.stage.optimal(episodes, noted.start[: last - first])
        # one running sum, in order: identical to the last bit for any division into blocks
        regret = np.cumsum(np.concatenate([[self.regret], optimal - noted.value[: last - first]]))[1:]
        self.regret = float(regret[-1])
        kept = recorded(episodes, self.episodes - 1, self.run.record_every) - first
        rows = slice(self.recorded, self.recorded + kept.size)
        for name, values in {"episode": episodes, "optimal": optimal, "regret": regret, **noted._asdict()}.items():
            self.columns[name][rows] = values[kept]
        self.recorded = rows.stop

    def _play_episode(self, k: int, delays: Ints) -> None:
        """Play episode `k` of a block in Python; `delays` has one entry per outcome."""
        episode, stage, rows, rng = self.played + k, self.stage, self.block_rows, self.rngs["environment"]
        queue = self.reports if isinstance(stage, TrialStage) else self.queue
        batch = [Feedback(origin, trajectory) for origin, trajectory in queue.arrived(episode)]
        self.agent.learn(batch)
        start = stage.begin(episode, rng)
        seen = None
        if self.plan_observer is not None:
            assert isinstance(self.agent, Learner)
            seen = self.plan_observer.plan(self.agent, self.rngs["agent"])
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
        which = self.delay.outcome(played.seen) if isinstance(self.delay, OutcomeDelays) else 0
        late = int(delays[integer("the delay's outcome", which, at_least=0, at_most=len(delays) - 1)])
        left = self.episodes - episode - 1
        if played.reports is None:
            if late < left:  # feedback after the end need not be stored
                self.queue.add(episode, late, played.trajectory)
            rows.arrived[k] = len(batch)
        else:
            taken, late = late, NEVER
            for report in played.reports:
                late = min(report.delay + taken, NEVER)
                if late < left:
                    self.reports.add(episode, late, report.trajectory)
            if late < left:
                self.ended[episode + late + 1] += 1
            rows.arrived[k] = self.ended[episode]
        rows.start[k] = played.start
        rows.delay[k] = late
        rows.value[k] = played.value
        rows.sampled_return[k] = played.earned

    def rows(self, first: int = 0) -> pl.DataFrame:
        """Return the rows so far, from row `first` on."""
        return to_frame({name: values[first : self.recorded] for name, values in self.columns.items()})


@entry_point
def play_compiled(
    record: Record,
    world: World,
    queue: ArrayQueue,
    rows: BlockRows,
    env_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    scratch: tuple[Ints, Floats, Ints, Ints, Floats],
    delays: Ints,
    outcome: int,
    first: int,
    total: int,
) -> None:
    """Play a block; all state is in the arguments."""
    record, world, queue, rows = borrowed(record), borrowed(world), borrowed(queue), borrowed(rows)
    delays = borrowed(delays)
    policy, values, states, actions, rewards = borrowed(scratch)
    for k in range(delays.shape[0]):
        episode = first + k
        arrived, learned = 0, BATCH
        while learned == BATCH:
            learned = 0
            while learned < BATCH and queue.size[0] > 0 and queue.heap[0, 0] <= episode:  # has arrived, oldest first
                origin = queue.heap[0, 1]
                slot = take_first(queue)
                late = Arrival(origin, 0, queue.states[slot], queue.actions[slot], queue.rewards[slot], False, ALL)
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
        if delay < total - episode - 1:  # feedback after the end need not be stored
            send(queue, episode + delay + 1, episode, states, actions, rewards)
        rows.start[k] = states[0]
        rows.delay[k] = delay
        rows.arrived[k] = arrived
        rows.value[k] = value_from(world, episode, policy, states[0], values)
        rows.sampled_return[k] = earned


class Plan(NamedTuple):
    """The numbers behind a plan."""

    q: Floats
    """Q_h(s, a) before the cap, shape (H, S, A)."""
    values: Floats
    """V_h(s), shape (H+1, S)."""
    weights: Floats
    """The drawn weights wᵐ_h, shape (H, M, d)."""


class Observed(NamedTuple):
    """The data of an episode for an observer, before its feedback is sent."""

    episode: int
    start: int
    policy: TablePolicy
    trajectory: Trajectory
    agent: Agent
    """The agent as it was when it planned, except that its chains have advanced."""
    plan: Plan | None
    """None for agents that do not draw weights."""


class PlanObserver:
    """Repeats the plans of an agent with the same random numbers, and keeps the intermediate results."""

    def __init__(self, agent: Learner) -> None:
        problem = agent.problem
        self._left = [Learner(agent.settings, _left_from(problem, h)) for h in range(problem.horizon)]
        self._shape = problem.states, problem.actions

    def plan(self, agent: Learner, rng: np.random.Generator) -> Plan:
        """Return the next plan of `agent` with `rng`, without changing either."""
        horizon, states = len(self._left), self._shape[0]
        q, values, weights = np.zeros((horizon, *self._shape)), np.zeros((horizon + 1, states)), []
        known = agent.memory()
        for h, left in enumerate(self._left):
            wanted = left.memory()
            learned = {name: each[-len(wanted[name]) :] if h else each for name, each in known.items()}
            left.restore({**learned, "heard": wanted["heard"]})
            left.plan(copy.deepcopy(rng))
            q[h], values[h] = left.record.work.q.reshape(self._shape), left.record.work.values[0]
            weights.append(np.array(left.record.drawn))
        return Plan(q, values, np.stack(weights))


def plan_observer(agent: Agent) -> PlanObserver | None:
    """Return an observer of the plans of `agent`; None if it does not draw weights."""
    return PlanObserver(agent) if isinstance(agent, Learner) and hasattr(agent.record, "drawn") else None


def _left_from(problem: TableProblem, h: int) -> TableProblem:
    """Return `problem` without its first h steps."""
    return replace(problem, horizon=problem.horizon - h, dynamics=None)


def pack(queue: FeedbackQueue[Trajectory]) -> Arrays:
    """Return the trajectories in flight, on tables or features, as arrays."""
    items = queue.items()
    flying = [trajectory for _, _, trajectory in items]
    states: list[Any] = [state for each in flying for state in each.states]
    sparse = [state for state in states if isinstance(state, SparseVector | SparseRows)]
    rows = [] if sparse else states
    lengths = [np.diff(s.starts) if isinstance(s, SparseRows) else [s.indices.size] for s in sparse]
    facts = [
        (due, origin, len(each.actions), each.first, int(each.terminated), PARTS.index(each.part))
        for (due, origin, _), each in zip(items, flying, strict=True)
    ]
    return {
        "facts": np.array(facts, np.int64).reshape(-1, 6),
        "states": np.array(rows, np.int64),
        "lengths": np.concatenate([np.zeros(0, np.int64), *lengths]).astype(np.int64),
        "indices": np.concatenate([np.zeros(0, np.int64), *(s.indices for s in sparse)]).astype(np.int64),
        "values": np.concatenate([np.zeros(0), *(s.values for s in sparse)]),
        "actions": np.concatenate([np.zeros(0, np.int64), *(each.actions for each in flying)]).astype(np.int64),
        "rewards": np.concatenate([np.zeros(0), *(each.rewards for each in flying)]),
    }


def unpack(arrays: Arrays, problem: Problem, played: int) -> tuple[FeedbackQueue[Trajectory], npt.NDArray[np.int64]]:
    """Return the queue that `pack` got, and (due, origin) of each; raise `InvalidInputError` if it is invalid."""
    facts = indices("facts", arrays["facts"], (None, 6), np.iinfo(np.int64).max)
    queue: FeedbackQueue[Trajectory] = FeedbackQueue()
    rows = problem.actions if isinstance(problem, SimulatorProblem) and problem.joint else None
    state = step = 0
    starts = np.concatenate([[0], np.cumsum(arrays["lengths"])])
    for due, origin, length, first, terminated, part in facts.tolist():
        if isinstance(problem, TableProblem):
            states: Any = arrays["states"][state : state + length + 1]
        else:
            states = [_sparse(arrays, starts, number, rows) for number in range(state, state + length + 1)]
        trajectory = Trajectory(
            states,
            arrays["actions"][step : step + length],
            arrays["rewards"][step : step + length],
            bool(terminated),
            first,
            PARTS[part],
        ).check(problem)
        queue.add(origin, due - origin - 1, trajectory)
        state, step = state + length + 1, step + length
    if step != len(arrays["actions"]) or step != len(arrays["rewards"]):
        raise refuse("actions", len(arrays["actions"]), f"{step} of them")
    if isinstance(problem, SimulatorProblem) and (
        len(starts) != state * (rows or 1) + 1 or not starts[-1] == len(arrays["indices"]) == len(arrays["values"])
    ):
        raise refuse("lengths", len(arrays["lengths"]), f"those of the features of {state} states")
    return queue, facts[:, :2]


def _sparse(
    arrays: Arrays, starts: npt.NDArray[np.int64], number: int, actions: int | None
) -> SparseVector | SparseRows:
    """Return state `number`, with a row for each of `actions` if the features are joint."""
    rows = 1 if actions is None else actions
    within = starts[number * rows : (number + 1) * rows + 1]
    entries = slice(within[0], within[-1])
    found, values = arrays["indices"][entries], arrays["values"][entries]
    return SparseVector(found, values) if actions is None else SparseRows(within - within[0], found, values)


def _check_sums(simulation: Simulation, rows: Arrays, played: int, regret: float) -> None:
    """Raise `InvalidInputError` if rows have another reference policy, or do not sum to `regret`."""
    if not np.array_equal(rows["optimal"], simulation.stage.optimal(rows["episode"], rows["start"])):
        raise refuse("column optimal", rows["optimal"], "the values of the reference policy")
    episode, before = (rows["episode"][-1], rows["regret"][-1]) if len(rows["episode"]) else (-1, 0.0)
    assert isinstance(simulation.run.environment, FiniteMDP)
    low, high = value_bounds(simulation.run.environment)
    if abs(regret - before) > (high - low) * (played - 1 - episode):
        raise refuse("regret", regret, "the sum of the rows")


def _check_in_flight(simulation: Simulation, heap: npt.NDArray[np.int64], rows: Arrays, played: int) -> None:
    """Raise `InvalidInputError` unless the heap can be in flight after `played` episodes, given the rows."""
    due, origin = heap[:, 0], heap[:, 1]
    if ((due < played) | (due >= simulation.episodes) | (origin >= played)).any() or len(set(origin)) < len(origin):
        raise refuse("heap", heap, f"distinct episodes below {played}, due later")
    rank, below = np.lexsort((origin, due)).argsort(), np.arange(1, len(heap))
    if (rank[(below - 1) // 2] > rank[below]).any():
        raise refuse("heap", heap, "a heap, earliest first")
    if len(rows["episode"]) == played:
        late = np.minimum(rows["delay"], simulation.episodes) + rows["episode"] + 1
        flying = np.flatnonzero((late >= played) & (late < simulation.episodes))
        if not np.array_equal(np.sort(origin), flying) or not np.array_equal(due[np.argsort(origin)], late[flying]):
            raise refuse("heap", heap, "the episodes in flight according to the rows")

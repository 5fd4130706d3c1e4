"""The whole state of a run in a file, from which it goes on to the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import generator_state, restore_generator
from belated._util.files import load_arrays, save_arrays
from belated._util.validate import indices, integer, real, refuse
from belated.agents._wrapper import part_of
from belated.delays import NEVER, FeedbackQueue
from belated.delays._outcome import next_delays
from belated.environments import FiniteMDP
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.runner._array_queue import checked_post
from belated.runner._experiment import check_description
from belated.runner._rows import check_rows, value_bounds
from belated.types import PARTS, Problem, Savable, SimulatorProblem, SparseRows, SparseVector, TableProblem, Trajectory

if TYPE_CHECKING:
    from belated.runner._simulation import Simulation

KIND, VERSION = "belated-checkpoint", 3
Arrays = dict[str, npt.NDArray[Any]]


def save_checkpoint(simulation: Simulation, path: Path) -> None:
    """Write the whole state of `simulation` to `path`."""
    agent = simulation.agent
    assert isinstance(agent, Savable)
    header = {
        "about": simulation.run.describe(),
        "played": simulation.played,
        "regret": simulation.regret.hex(),
        "rngs": {name: generator_state(rng) for name, rng in simulation.rngs.items()},
        "distribution": simulation.distribution_state,
    }
    queue: Arrays = dict(simulation.post._asdict()) if simulation.compiled else pack(simulation.queue)
    arrays = {
        **{f"memory.{name}": values for name, values in agent.memory().items()},
        **{f"queue.{name}": values for name, values in queue.items()},
        **{f"rows.{name}": values[: simulation.recorded] for name, values in simulation.columns.items()},
        "delays": simulation.delays,
    }
    save_arrays(path, KIND, VERSION, header, arrays)


def restore_checkpoint(simulation: Simulation, path: Path) -> None:
    """Go on from what `save_checkpoint` wrote; a file that is refused changes nothing.

    The state of another run is rejected, and that of another belated.
    """
    try:
        header, arrays = load_arrays(path, KIND, VERSION)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; delete it to begin the run again") from None
    agent, problem = simulation.agent, simulation.stage.problem
    if not isinstance(agent, Savable):
        raise InvalidInputError(f"{path} is a checkpoint, which an agent of this kind cannot go on from; delete it")
    try:
        about = dict(header["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{path} does not hold a usable checkpoint: {error}") from None
    check_description(str(path), about, simulation.run.describe())
    try:
        played = integer("played", header["played"], at_least=1, at_most=simulation.episodes)
        known = isinstance(simulation.run.environment, FiniteMDP)
        regret = real("regret", float.fromhex(header["regret"])) if known else float.fromhex(header["regret"])
        rows = part_of(arrays, "rows.")
        check_rows(rows, simulation.run.environment, simulation.episodes, simulation.run.record_every, played)
        if known:
            _check_sums(simulation, rows, played, regret)
        delays = arrays["delays"]
        indices("delays", delays, simulation.shape_of_delays(played), NEVER + 1)
        given = part_of(arrays, "queue.")
        post, queue = simulation.post, simulation.queue
        if simulation.compiled and isinstance(problem, TableProblem):
            post = checked_post(given, problem.horizon, problem.states, problem.actions)
            heap = post.heap[: post.size[0]]
        else:
            queue, heap = unpack(given, problem, played)
        _check_in_flight(simulation, heap, rows, played)
        rngs = {name: restore_generator(header["rngs"][name]) for name in simulation.rngs}
        distribution_state = header.get("distribution")
        if played < simulation.episodes:  # a distribution that cannot go on from its state says so now
            next_delays(simulation.delay, restore_generator(header["rngs"]["delay"]), 1, played, distribution_state)
        agent.restore(part_of(arrays, "memory."))
    except (BelatedError, KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise DamagedFileError(
            f"{path} does not hold a usable checkpoint: {error}; delete it to begin the run again"
        ) from error
    recorded = len(rows["episode"])
    for name, values in rows.items():
        simulation.columns[name][:recorded] = values
    simulation.post, simulation.queue, simulation.rngs = post, queue, rngs
    simulation.delays, simulation.distribution_state = np.array(delays), distribution_state
    simulation.played, simulation.regret, simulation.recorded = played, regret, recorded


def pack(queue: FeedbackQueue[Trajectory]) -> Arrays:
    """Return the trajectories in flight, of any length and on tables or features, as arrays."""
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
    """Return what `pack` was given, and (due, origin) of each; raise `InvalidInputError` if it does not fit."""
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
    """Raise `InvalidInputError` if rows are counted against another policy, or do not lead to `regret`."""
    if not np.array_equal(rows["optimal"], simulation.optimal_of(rows["episode"], rows["start"])):
        raise refuse("column optimal", rows["optimal"], "the values of the policy that regret is counted against")
    episode, before = (rows["episode"][-1], rows["regret"][-1]) if len(rows["episode"]) else (-1, 0.0)
    assert isinstance(simulation.run.environment, FiniteMDP)
    low, high = value_bounds(simulation.run.environment)
    if abs(regret - before) > (high - low) * (played - 1 - episode):
        raise refuse("regret", regret, "what the rows lead to")


def _check_in_flight(simulation: Simulation, heap: npt.NDArray[np.int64], rows: Arrays, played: int) -> None:
    """Raise `InvalidInputError` for what cannot be in flight after `played` episodes, or is unknown to the rows."""
    due, origin = heap[:, 0], heap[:, 1]
    if ((due < played) | (due >= simulation.episodes) | (origin >= played)).any() or len(set(origin)) < len(origin):
        raise refuse("heap", heap, f"of episodes below {played}, each once, due later")
    rank, below = np.lexsort((origin, due)).argsort(), np.arange(1, len(heap))
    if (rank[(below - 1) // 2] > rank[below]).any():
        raise refuse("heap", heap, "a heap, the earliest first")
    if len(rows["episode"]) == played:
        late = np.minimum(rows["delay"], simulation.episodes) + rows["episode"] + 1
        flying = np.flatnonzero((late >= played) & (late < simulation.episodes))
        if not np.array_equal(np.sort(origin), flying) or not np.array_equal(due[np.argsort(origin)], late[flying]):
            raise refuse("heap", heap, "what the rows say is in flight")

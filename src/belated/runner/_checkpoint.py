"""The whole state of a run in a file, between two draws of delays, from which it goes on to the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import generator_state, restore_generator
from belated._util.files import load_arrays, save_arrays
from belated._util.validate import integer, real, refuse
from belated.agents._base import Learner
from belated.agents._wrapper import part_of
from belated.delays._outcome import next_delays
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.runner._array_queue import checked_post
from belated.runner._experiment import check_description
from belated.runner._rows import check_rows, value_bounds

if TYPE_CHECKING:
    from belated.runner._simulation import Simulation

KIND, VERSION = "belated-checkpoint", 2
Columns = dict[str, npt.NDArray[Any]]


def save_checkpoint(simulation: Simulation, path: Path) -> None:
    """Write the whole state of `simulation` to `path`."""
    agent = simulation.agent
    assert isinstance(agent, Learner)
    header = {
        "about": simulation.describe(),
        "played": simulation.played,
        "regret": simulation.regret.hex(),
        "rngs": {name: generator_state(rng) for name, rng in simulation.rngs.items()},
        "distribution": simulation.distribution_state,
    }
    arrays = {
        **{f"memory.{name}": values for name, values in agent.memory().items()},
        **{f"post.{name}": values for name, values in simulation.post._asdict().items()},
        **{f"rows.{name}": values[: simulation.recorded] for name, values in simulation.columns.items()},
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
    agent, world = simulation.agent, simulation.environment
    if not isinstance(agent, Learner):
        raise InvalidInputError(f"{path} is a checkpoint, which an agent of this kind cannot go on from; delete it")
    try:
        about = dict(header["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{path} does not hold a usable checkpoint: {error}") from None
    check_description(str(path), about, simulation.describe())
    try:
        played = integer("played", header["played"], at_least=1, at_most=simulation.episodes)
        if played % simulation.chunk:
            raise refuse("played", played, f"a multiple of {simulation.chunk}")
        regret = real("regret", float.fromhex(header["regret"]))
        rows = part_of(arrays, "rows.")
        check_rows(rows, world, simulation.episodes, simulation.record_every, played)
        _check_sums(simulation, rows, played, regret)
        post = checked_post(part_of(arrays, "post."), world.horizon, world.states, world.actions)
        _check_in_flight(simulation, post.heap[: post.size[0]], rows, played)
        rngs = {name: restore_generator(header["rngs"][name]) for name in simulation.rngs}
        distribution_state = header.get("distribution")
        if played < simulation.episodes:  # a distribution that cannot go on from its state says so now
            next_delays(simulation.delay, restore_generator(header["rngs"]["delay"]), 1, played, distribution_state)
        agent.restore(part_of(arrays, "memory."))
    except (BelatedError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(
            f"{path} does not hold a usable checkpoint: {error}; delete it to begin the run again"
        ) from error
    recorded = len(rows["episode"])
    for name, values in rows.items():
        simulation.columns[name][:recorded] = values
    simulation.post, simulation.rngs, simulation.distribution_state = post, rngs, distribution_state
    simulation.played, simulation.regret, simulation.recorded = played, regret, recorded


def _check_sums(simulation: Simulation, rows: Columns, played: int, regret: float) -> None:
    """Refuse rows that are counted against another policy, and a regret that they do not lead to."""
    if not np.array_equal(rows["optimal"], simulation.optimal_of(rows["episode"], rows["start"])):
        raise refuse("column optimal", rows["optimal"], "the values of the policy that regret is counted against")
    episode, before = (rows["episode"][-1], rows["regret"][-1]) if len(rows["episode"]) else (-1, 0.0)
    low, high = value_bounds(simulation.environment)
    if abs(regret - before) > (high - low) * (played - 1 - episode):
        raise refuse("regret", regret, "what the rows lead to")


def _check_in_flight(simulation: Simulation, heap: npt.NDArray[np.int64], rows: Columns, played: int) -> None:
    """Refuse what cannot be in flight after `played` episodes, or what the rows do not know of."""
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

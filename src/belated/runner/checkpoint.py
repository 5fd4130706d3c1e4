"""The whole state of a run in a file, between two draws of delays, from which it goes on to the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from belated.algorithms.agent import Learner
from belated.algorithms.around import part_of
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.rng import generator_state, restore_generator
from belated.runner.about import check_about
from belated.runner.post import checked_post
from belated.runner.rows import COLUMNS
from belated.storage import load_arrays, save_arrays
from belated.types import Floats
from belated.validate import array, indices, integer, real, refuse

if TYPE_CHECKING:
    from belated.runner.loop import Simulation

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
    }
    arrays = {
        **{f"memory.{name}": values for name, values in agent.memory().items()},
        **{f"post.{name}": values for name, values in simulation.post._asdict().items()},
        **{f"rows.{name}": values[: simulation.recorded] for name, values in simulation.columns.items()},
    }
    save_arrays(path, KIND, VERSION, header, arrays)


def restore_checkpoint(simulation: Simulation, path: Path, *, accept_old: bool = False) -> None:
    """Go on from what `save_checkpoint` wrote; a file that is refused changes nothing.

    The state of another run is refused, and that of another belated unless `accept_old`.
    """
    header, arrays = load_arrays(path, KIND, VERSION)
    agent, world = simulation.agent, simulation.environment
    if not isinstance(agent, Learner):
        raise InvalidInputError(f"{path} is a checkpoint, which an agent of this kind cannot go on from; delete it")
    try:
        about = dict(header["about"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{path} does not hold a usable checkpoint: {error}") from None
    check_about(str(path), about, simulation.describe(), accept_old=accept_old)
    try:
        played = integer("played", header["played"], at_least=1, at_most=simulation.episodes)
        if played % simulation.chunk:
            raise refuse("played", played, f"a multiple of {simulation.chunk}")
        regret = real("regret", float.fromhex(header["regret"]))
        rows = _checked_rows(simulation, part_of(arrays, "rows."), played, regret)
        post = checked_post(part_of(arrays, "post."), world.horizon, world.states, world.actions)
        _check_flights(simulation, post.heap[: post.size[0]], rows, played)
        rngs = {name: restore_generator(header["rngs"][name]) for name in simulation.rngs}
        agent.restore(part_of(arrays, "memory."))
    except (BelatedError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"{path} does not hold a usable checkpoint: {error}") from error
    recorded = len(rows["episode"])
    for name, values in rows.items():
        simulation.columns[name][:recorded] = values
    simulation.post, simulation.rngs, simulation.recorded = post, rngs, recorded
    simulation.played, simulation.regret = played, regret


def _checked_rows(simulation: Simulation, rows: Columns, played: int, regret: float) -> Columns:
    """Return the rows of the first `played` episodes, refusing what no run could have recorded."""
    wanted = simulation.recorded_among(np.arange(played))
    if set(rows) != set(COLUMNS):
        raise refuse("the columns", sorted(rows), f"{sorted(COLUMNS)}")
    for name, kind in COLUMNS.items():
        if rows[name].dtype != kind or rows[name].shape != wanted.shape:
            raise refuse(f"rows.{name}", rows[name].shape, f"{np.dtype(kind)} of shape {wanted.shape}")
    if not np.array_equal(rows["episode"], wanted):
        raise refuse("rows.episode", rows["episode"], "the episodes that are recorded")
    indices("rows.start", rows["start"], wanted.shape, simulation.environment.states)
    for name in ("delay", "arrived"):
        if rows[name].min(initial=0) < 0:
            raise refuse(f"rows.{name}", rows[name].min(), "at least 0")
    for name in ("value", "sampled_return"):
        array(f"rows.{name}", rows[name], wanted.shape)
    if not np.array_equal(rows["optimal"], simulation.optimal_of(wanted, rows["start"])):
        raise refuse("rows.optimal", rows["optimal"], "the values of the policy that regret is counted against")
    _check_regret(simulation, rows, wanted.size == played, played, regret)
    return rows


def _check_regret(simulation: Simulation, rows: Columns, every: bool, played: int, regret: float) -> None:
    """Refuse a regret that is not the sum over the rows, or that could not have grown so much between two of them."""
    found: Floats = array("rows.regret", rows["regret"], rows["regret"].shape)
    if every and not np.array_equal(found, np.cumsum(rows["optimal"] - rows["value"])):
        raise refuse("rows.regret", found, "the running sum of optimal − value")
    episodes = np.concatenate([[-1], rows["episode"], [played - 1]])
    growth = np.abs(np.diff(np.concatenate([[0.0], found, [regret]])))
    if (growth > 1.001 * simulation.environment.horizon * np.diff(episodes)).any():
        raise refuse("regret", regret, "what the rows lead to")


def _check_flights(simulation: Simulation, heap: npt.NDArray[np.int64], rows: Columns, played: int) -> None:
    """Refuse flights that the rows do not know of, or that could not be in the air after `played` episodes."""
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
        if not np.array_equal(rows["arrived"], np.bincount(late[late < played], minlength=played)):
            raise refuse("rows.arrived", rows["arrived"], "the arrivals that the delays lead to")

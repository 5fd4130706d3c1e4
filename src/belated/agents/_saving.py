"""Saving and loading agents, including their random streams."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from belated._kernels.streams import generator_state, restore_generator
from belated._util.files import check_maker, load_arrays, save_arrays
from belated._util.plugins import reading
from belated._util.validate import refuse
from belated.agents._registry import agent_from_dict
from belated.errors import BelatedError, DamagedFileError, InvalidInputError
from belated.features import Features, features_from_dict
from belated.types import Algorithm, Dynamics, Problem, Savable, SimulatorProblem, TableProblem

KIND, VERSION = "belated-agent", 1


@runtime_checkable
class SavableAgent(Savable, Protocol):
    """What `save_agent` requires: the settings, the problem, and the memory as named arrays."""

    @property
    def settings(self) -> Algorithm: ...

    @property
    def problem(self) -> Problem: ...


@runtime_checkable
class Described(Protocol):
    """Settings as plain values."""

    def to_dict(self) -> dict[str, Any]: ...


class Saved(NamedTuple):
    """A loaded agent and, if one was saved with it, its random stream."""

    agent: Any
    """A `SavableAgent` of the class named in the file."""
    rng: np.random.Generator | None


def save_agent(path: str | Path, agent: SavableAgent, rng: np.random.Generator | None = None) -> None:
    """Write `agent`, and the random stream it plans with, to one file.

    >>> import tempfile
    >>> from belated import DelayedPSVI, RiverSwim
    >>> agent, rng = DelayedPSVI().start(RiverSwim().problem), np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_agent(folder + "/agent.npz", agent, rng)
    ...     copy, copied_rng = load_agent(folder + "/agent.npz")
    >>> bool((copy.plan(copied_rng).actions == agent.plan(rng).actions).all())
    True
    """
    missing = [name for name in ("settings", "problem", "memory", "restore") if not hasattr(agent, name)]
    if missing:
        raise refuse("agent", agent, f"an agent that can be saved (it has no {missing[0]!r})")
    settings, problem = agent.settings, agent.problem
    if not isinstance(settings, Described):
        raise refuse("agent.settings", settings, "settings with a method to_dict()")
    arrays = {f"memory.{name}": values for name, values in agent.memory().items()}
    header: dict[str, Any] = {
        "settings": settings.to_dict(),
        "horizon": problem.horizon,
        "homogeneous": problem.homogeneous,
        "discount": problem.discount,
        "reward_range": [end if math.isfinite(end) else None for end in problem.reward_range],
        "rng": None if rng is None else generator_state(rng),
    }
    known: dict[str, npt.NDArray[Any]] = {}
    if isinstance(problem, SimulatorProblem):
        features = problem.features
        if not isinstance(features, Features):
            raise refuse("the agent's features", features, "a feature map of belated.features, which can be saved")
        header["simulator"] = {
            "actions": problem.actions,
            "features": features.to_dict(),
            "learned_range": problem.learned_range,
        }
    elif isinstance(problem, TableProblem):
        known = {"features": problem.features}
        if problem.dynamics is not None:
            known |= {f"dynamics.{name}": values for name, values in problem.dynamics._asdict().items()}
    save_arrays(Path(path), KIND, VERSION, header, {**known, **arrays})


def load_agent(path: str | Path, classes: Iterable[Any] = ()) -> Saved:
    """Return the agent that `save_agent` wrote, ready to continue.

    The file may name built-in classes, those of plugins, and `classes`, which you trust: your own settings, each with a
    `kind` and a `from_dict`, feature maps, functions, transformers, or their names, `module:Name`. Nothing else is
    imported. A file written by another version of belated is rejected, since the agent might continue differently.
    """
    header, arrays = load_arrays(Path(path), KIND, VERSION)
    check_maker(str(path), header.get("made_by"))
    with reading(classes):
        try:
            agent = agent_from_dict(header["settings"]).start(_problem(header, arrays))
            if not isinstance(agent, SavableAgent):
                raise InvalidInputError(f"{type(agent).__name__} has no memory to restore")
            agent.restore({name.removeprefix("memory."): values for name, values in arrays.items()})
            rng = None if header["rng"] is None else restore_generator(header["rng"])
        except (BelatedError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise DamagedFileError(f"{path} does not contain a valid agent: {error}") from error
    return Saved(agent, rng)


def _problem(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Problem:
    """Return the problem of a saved agent, and remove its arrays from `arrays`."""
    low, high = header["reward_range"]
    known: dict[str, Any] = {
        "homogeneous": header["homogeneous"],
        "discount": header["discount"],
        "reward_range": (-math.inf if low is None else low, math.inf if high is None else high),
    }
    simulator = header.get("simulator")
    if simulator is not None:
        return SimulatorProblem(
            features_from_dict(simulator["features"]),
            header["horizon"],
            actions=simulator["actions"],
            learned_range=simulator["learned_range"],
            **known,
        )
    transitions, start = (arrays.pop(f"dynamics.{name}", None) for name in Dynamics._fields)
    dynamics = None if transitions is None or start is None else Dynamics(transitions, start)
    return TableProblem(arrays.pop("features"), header["horizon"], dynamics, **known)

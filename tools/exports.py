"""Write the stubs that say which public name of a package comes from where; the packages load each when it is used.

    python tools/exports.py            write them
    python tools/exports.py --check    tell which are not as they would be written, and fail if any is

An algorithm, a delay distribution or an environment is exported because it stands in its registry; everything else is listed
here. Both type checkers and `lazy_loader` read the stubs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "belated"
NOTE = '"""Written by tools/exports.py: which name comes from where."""\n'

Exports = Mapping[str, Iterable[str]]
"""Names by the module that defines them, seen from the package."""


#: What each package exports besides the classes of its registry.
PACKAGES: dict[str, dict[str, list[str]]] = {
    "agents": {
        "_base": ["CompiledSettings", "Learner", "Settings"],
        "_baselines": ["lmc_lsvi", "lsvi_phe", "lsvi_ucb", "rlsvi"],
        "_registry": ["AGENTS", "agent_from_dict"],
        "_saving": ["load_agent", "save_agent"],
    },
    "delays": {
        "_base": ["NEVER", "DelayDistribution", "IndependentDelays", "SubExponential"],
        "_queue": ["DelayBuffer", "arrival_schedule"],
        "_outcome": ["OutcomeDelays"],
        "_registry": ["DELAYS", "delay_from_dict", "delay_from_text"],
    },
    "environments": {
        "_bandit": ["Bandit"],
        "_finite": ["FiniteMDP"],
        "_gym_bridge": ["as_gymnasium", "from_gymnasium"],
        "_gym_environment": ["GymEnvironment", "TablePolicy", "any_environment_from_dict"],
        "_kernels": ["World"],
        "_linearity": ["Linearity"],
        "_registry": ["ENVIRONMENTS", "environment_from_dict"],
    },
    "runner": {
        "_executor": ["run", "run_experiment"],
        "_experiment": ["Experiment", "Run", "file_name"],
        "_simulation": ["Simulation", "simulate"],
        "_observer": ["Observed", "Plan"],
        "_results": ["Results"],
        "_callbacks": ["Callback", "JSONLines", "MLflow", "TensorBoard", "WandB"],
        "_store": ["Store"],
        "_tuning": ["Outcome", "Rung", "Search", "Space", "load_search", "load_winners", "tune"],
    },
}

#: What the whole package exports besides the classes of the registries.
REST: dict[str, list[str]] = {
    "agents._registry": ["AGENTS"],
    "agents._saving": ["load_agent", "save_agent"],
    "delays._base": ["DelayDistribution", "IndependentDelays"],
    "delays._queue": ["DelayBuffer"],
    "environments._bandit": ["Bandit"],
    "environments._finite": ["FiniteMDP"],
    "environments._gym_environment": ["GymEnvironment"],
    "errors": ["BelatedError", "DamagedFileError", "InvalidInputError", "UnknownNameError"],
    "runner._executor": ["run", "run_experiment"],
    "runner._experiment": ["Experiment"],
    "runner._simulation": ["simulate"],
    "runner._results": ["Results"],
    "runner._callbacks": ["Callback"],
    "types": ["Agent", "Algorithm", "Feedback", "Policy", "Problem", "Trajectory"],
}


def registered() -> dict[str, dict[str, list[str]]]:
    """Return the classes of each registry by package and by the module that defines them."""
    for package in (".", *PACKAGES):  # without their stubs the packages cannot be imported
        (SOURCE / package / "__init__.pyi").touch()
    from belated.agents._registry import AGENTS
    from belated.delays._registry import DELAYS
    from belated.environments._registry import ENVIRONMENTS

    registries: dict[str, Mapping[str, type]] = {"agents": AGENTS, "delays": DELAYS, "environments": ENVIRONMENTS}
    found: dict[str, dict[str, list[str]]] = {}
    for package, registry in registries.items():
        modules = found.setdefault(package, {})
        for each in registry.values():
            modules.setdefault(each.__module__.removeprefix(f"belated.{package}."), []).append(each.__name__)
    return found


def merged(*parts: Exports) -> dict[str, set[str]]:
    """Return all names of several parts."""
    found: dict[str, set[str]] = {}
    for part in parts:
        for module, names in part.items():
            found.setdefault(module, set()).update(names)
    return found


def _as_ruff_sorts(name: str) -> tuple[int, str]:
    """Order constants before classes before functions."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name


def stub(exports: Exports, submodules: Iterable[str] = ()) -> str:
    """Return the stub of a package."""
    lines = [f"from . import {name} as {name}" for name in sorted(submodules)]
    for module in sorted(exports):
        lines += [f"from .{module} import {name} as {name}" for name in sorted(exports[module], key=_as_ruff_sorts)]
    names = sorted({name for each in exports.values() for name in each}, key=_as_ruff_sorts)
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in names), "]"]
    return NOTE + "\n" + "\n".join(lines) + "\n"


def stubs() -> dict[Path, str]:
    """Return every stub and its text."""
    classes = registered()
    found = {
        SOURCE / package / "__init__.pyi": stub(merged(rest, classes.get(package, {})))
        for package, rest in PACKAGES.items()
    }
    deeper = [{f"{package}.{module}": names for module, names in each.items()} for package, each in classes.items()]
    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    whole = stub(merged(REST, *deeper), {name for name in modules if not name.startswith("_")})
    found[SOURCE / "__init__.pyi"] = whole.replace("__all__", "__version__: str\n\n__all__")
    return found


def main(check: bool) -> int:
    """Write all stubs, or tell which differ."""
    wrong = {path: text for path, text in stubs().items() if path.read_text(encoding="utf-8") != text}
    for path, text in wrong.items():
        if check:
            print(f"{path} is not what tools/exports.py writes")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

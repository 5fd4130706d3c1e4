"""Generate the stubs that map the public names of a package to their modules, which are imported lazily.

    python tools/exports.py            write them
    python tools/exports.py --check    list the stubs that are out of date, and fail if there are any

Algorithms, delay distributions and environments are exported because they are in a registry; every other public name of
these packages is listed here and nowhere else. The module that defines a name is found in the source. Type checkers,
`lazy_loader` and the reference pages read the stubs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "belated"
NOTE = '"""Written by tools/exports.py: which name comes from where."""\n'

#: What each package exports besides the classes of its registry.
PACKAGES: dict[str, list[str]] = {
    "agents": [
        "AGENTS",
        "Ablation",
        "CompiledSettings",
        "Learner",
        "Settings",
        "agent_from_dict",
        "lmc_lsvi",
        "load_agent",
        "lsvi_phe",
        "lsvi_ucb",
        "rlsvi",
        "save_agent",
    ],
    "delays": [
        "DELAYS",
        "NEVER",
        "FeedbackQueue",
        "DelayDistribution",
        "IndependentDelays",
        "OutcomeDelays",
        "SubExponential",
        "arrival_schedule",
        "delay_from_dict",
        "delay_from_text",
    ],
    "environments": [
        "ENVIRONMENTS",
        "Bandit",
        "FiniteMDP",
        "GymEnvironment",
        "Linearity",
        "World",
        "any_environment_from_dict",
        "as_gymnasium",
        "environment_from_dict",
        "from_gymnasium",
        "play",
    ],
    "runner": [
        "Callback",
        "Experiment",
        "JSONLines",
        "MLflow",
        "Observed",
        "Outcome",
        "Plan",
        "Results",
        "Run",
        "Rung",
        "Search",
        "Simulation",
        "Space",
        "Store",
        "Summary",
        "TensorBoard",
        "WandB",
        "file_name",
        "load_search",
        "load_winners",
        "run",
        "run_experiment",
        "simulate",
        "tune",
    ],
    "decisions": [
        "Activate",
        "Arrival",
        "Batch",
        "ByAge",
        "Cancel",
        "Choice",
        "ClockError",
        "ConflictError",
        "Decide",
        "Decided",
        "Decision",
        "DecisionLearner",
        "DecisionState",
        "DefaultAfter",
        "End",
        "Entry",
        "Estimate",
        "Evaluation",
        "Event",
        "Forgetting",
        "ForgottenError",
        "Mature",
        "MemoryStore",
        "Model",
        "ModelSettings",
        "Outcome",
        "PosteriorError",
        "PostgresStore",
        "Reward",
        "SQLiteStore",
        "Served",
        "SessionEntry",
        "SessionEvaluation",
        "SessionSettings",
        "SessionState",
        "Signal",
        "StateError",
        "Status",
        "Store",
        "StoreError",
        "StoreFullError",
        "Unknown",
        "always",
        "commit",
        "evaluate",
        "evaluate_sessions",
        "replay",
        "replay_sessions",
        "sessions_in",
        "uniform",
    ],
    "service": ["Service", "make_app"],
}

#: What `belated` itself exports, besides the classes of the registries: names of the packages above, or of its modules.
TOP = [
    "AGENTS",
    "Agent",
    "Algorithm",
    "Bandit",
    "BelatedError",
    "Callback",
    "DamagedFileError",
    "DelayDistribution",
    "Environment",
    "Experiment",
    "Feedback",
    "FeedbackQueue",
    "FiniteMDP",
    "GymEnvironment",
    "IndependentDelays",
    "InvalidInputError",
    "Policy",
    "Problem",
    "Results",
    "SimulatorProblem",
    "SparseRows",
    "SparseVector",
    "TablePolicy",
    "TableProblem",
    "Trajectory",
    "UnknownNameError",
    "load_agent",
    "run",
    "run_experiment",
    "save_agent",
    "simulate",
]

Exports = dict[str, list[str]]
"""Names by the module that defines them, seen from the package."""


def registered() -> dict[str, list[str]]:
    """Return the names of the classes in each registry, by package."""
    for package in (".", *PACKAGES):  # the packages cannot be imported without their stubs
        (SOURCE / package / "__init__.pyi").touch()
    from belated.agents._registry import AGENTS
    from belated.delays._registry import DELAYS
    from belated.environments._registry import ENVIRONMENTS

    registries: dict[str, Mapping[str, type]] = {"agents": AGENTS, "delays": DELAYS, "environments": ENVIRONMENTS}
    return {package: [each.__name__ for each in registry.values()] for package, registry in registries.items()}


def definitions(files: Iterable[Path], package: Path) -> dict[str, list[str]]:
    """Return the modules of `package`, as dotted paths, that define each name at their top level."""
    found: dict[str, list[str]] = {}
    for file in files:
        module = ".".join(file.relative_to(package).with_suffix("").parts)
        for name in _defined(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(module)
    return found


def _defined(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for line in module.body:
        match line:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case _:
                pass
    return names


def located(names: Iterable[str], known: Mapping[str, list[str]], where: str) -> Exports:
    """Return `names` by the one module that defines each."""
    found: Exports = {}
    for name in names:
        modules = known.get(name, [])
        if len(modules) != 1:
            sys.exit(f"{name} must be defined by one module of {where}, got {modules or 'none'}")
        found.setdefault(modules[0], []).append(name)
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
    classes, found, known = registered(), {}, definitions(sorted(SOURCE.glob("*.py")), SOURCE)
    for package, rest in PACKAGES.items():
        folder = SOURCE / package
        exports = located(
            [*rest, *classes.get(package, [])], definitions(sorted(folder.rglob("*.py")), folder), package
        )
        found[folder / "__init__.pyi"] = stub(exports)
        for module, names in exports.items():
            known.update({name: [f"{package}.{module}"] for name in names})
    modules = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    whole = located([*TOP, *(name for names in classes.values() for name in names)], known, "belated")
    text = stub(whole, {name for name in modules if not name.startswith("_")})
    found[SOURCE / "__init__.pyi"] = text.replace("__all__", "__version__: str\n\n__all__")
    return found


def main(check: bool) -> int:
    """Write all stubs, or report which differ."""
    wrong = {path: text for path, text in stubs().items() if path.read_text(encoding="utf-8") != text}
    for path, text in wrong.items():
        if check:
            print(f"{path} is not what tools/exports.py writes")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

"""Use the installed package without extras: `make dist-test` runs this in a clean environment, away from the clone."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.metadata import metadata, requires, version
from pathlib import Path

import belated

#: What says, when it is imported, which extra it needs; of the others the function or command that needs them does.
SAYING = {"belated.gymnasium": "gym", "belated.client": "client"}
TINY = """
name = "tiny"
episodes = 30
seeds = 2

[environments.river]
environment = "riverswim"

[delays.poisson]
distribution = "poisson"
mean = 5

[agents.psvi]
algorithm = "psvi"

[agents.random]
algorithm = "random"
"""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m belated` with `arguments`."""
    program = [sys.executable, "-m", "belated", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def optional() -> set[str]:
    """Return the import names of the packages that only extras install."""
    names = {re.split(r"[^\w-]", need)[0] for need in requires("belated") or () if "extra ==" in need}
    return {{"scikit-learn": "sklearn"}.get(name, name).replace("-", "_") for name in names}


def import_all() -> int:
    """Import every module and every public name, and return the number of modules without an extra.

    Only packages of an extra may be missing.
    """
    count, extras = 0, optional()
    for name in belated.__all__:
        getattr(belated, name)
    for module in pkgutil.walk_packages(belated.__path__, "belated.", onerror=lambda name: None):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except (ImportError, belated.BelatedError) as error:
            parent = next((name for name in SAYING if f"{module.name}.".startswith(f"{name}.")), None)
            if parent and f"belated[{SAYING[parent]}]" not in str(error):
                sys.exit(f"importing {module.name} without the extra {SAYING[parent]} says: {error}")
            if not parent and str(getattr(error, "name", "")).partition(".")[0] not in extras:
                raise
        else:
            count += 1
    return count


def main() -> None:
    """Check the version, the imports and the commands."""
    here = Path(belated.__file__).resolve()
    if "site-packages" not in here.parts:
        sys.exit(f"this is not the installed package: {here}")
    if not version("belated") == belated.__version__ == command("--version").stdout.split()[-1]:
        sys.exit(f"versions differ: {version('belated')}, {belated.__version__}, {command('--version').stdout}")
    if not metadata("belated").get_all("Project-URL"):
        sys.exit("the metadata has no links")
    imported = import_all()
    helped = command("--help")
    Path("tiny.toml").write_text(TINY, encoding="utf-8")
    played = command("run", "tiny.toml")
    if helped.returncode or played.returncode or not list(Path("results").rglob("*.parquet")):
        sys.exit(f"{helped.stdout}{helped.stderr}{played.stdout}{played.stderr}")
    for arguments, needed in (
        (("plot", "results/tiny"), "belated[plots]"),
        (("serve",), "belated[service]"),
        (("paper", "--full"), "pip install belated-studies"),
        (("tune", "synthetic"), "pip install belated-studies"),
    ):
        refused = command(*arguments)
        if not refused.returncode or needed not in refused.stderr or "Traceback" in refused.stderr:
            sys.exit(f"belated {' '.join(arguments)} without {needed} says: {refused.stdout}{refused.stderr}")
    print(f"belated {belated.__version__}: {imported} modules imported without extras, a run played")


if __name__ == "__main__":
    main()

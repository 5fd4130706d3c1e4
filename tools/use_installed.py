"""Use the installed package without extras: `make dist-test` runs this in a clean environment, away from the clone."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import metadata, version
from pathlib import Path

import belated

#: What cannot be imported without an extra, and the extra that the message must name; of a service it is the command
#: that says so.
HEAVY = {"belated.gymnasium": "gym", "belated.client": "client", "belated.service": None}
#: Modules that cannot be imported alone because what they are for is not there: peers' programs, and PostgreSQL.
FOREIGN = ("belated.studies.peer_scripts.use_", "belated.decisions.store.postgres")
TINY = """
name = "tiny"
episodes = 30
seeds = 2

[environments.river]
environment = "riverswim"

[delays.poisson]
law = "poisson"
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


def import_all() -> int:
    """Import every module that needs no extra, require a helpful message of the others, and return how many."""
    count = 0
    for module in pkgutil.walk_packages(belated.__path__, "belated.", onerror=lambda name: None):
        if module.name.startswith(FOREIGN) or module.name.endswith("__main__"):
            continue
        heavy = next((name for name in HEAVY if module.name == name or module.name.startswith(f"{name}.")), None)
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if heavy is None:
                raise
            extra = HEAVY[heavy]
            if extra and module.name == heavy and f"belated[{extra}]" not in str(error):
                sys.exit(f"without the extra {extra}, importing {heavy} says: {error}")
        else:
            count += 1
    return count


def main() -> None:
    """Check the version, the imports, the data files and the commands."""
    here = Path(belated.__file__).resolve()
    if "site-packages" not in here.parts:
        sys.exit(f"this is not the installed package: {here}")
    if not version("belated") == belated.__version__ == command("--version").stdout.split()[-1]:
        sys.exit(f"versions differ: {version('belated')}, {belated.__version__}, {command('--version').stdout}")
    links = metadata("belated").get_all("Project-URL") or []
    if not links:
        sys.exit("the metadata has no links")
    imported = import_all()
    from belated.studies.winners import tuned

    tuned("synthetic"), tuned("linear-bandit")
    helped = command("--help")
    Path("tiny.toml").write_text(TINY, encoding="utf-8")
    played = command("run", "tiny.toml")
    if helped.returncode or played.returncode or not list(Path("results").rglob("*.parquet")):
        sys.exit(f"{helped.stdout}{helped.stderr}{played.stdout}{played.stderr}")
    for arguments, extra in ((("plot", "results/tiny"), "plots"), (("serve",), "service")):
        refused = command(*arguments)
        if not refused.returncode or f"belated[{extra}]" not in refused.stderr or "Traceback" in refused.stderr:
            sys.exit(f"belated {' '.join(arguments)} without the extra {extra} says: {refused.stdout}{refused.stderr}")
    print(f"belated {belated.__version__}: {imported} modules imported without extras, a run played")


if __name__ == "__main__":
    main()

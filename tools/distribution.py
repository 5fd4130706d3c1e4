"""Build both distributions, install each in a clean environment, and use it there: belated alone, then its studies.

python tools/distribution.py [PYTHON]    PYTHON: interpreter of the clean environment, by default this one

Needs `build`, `twine` and `mypy`, from the extra `dev`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies"
IN_USE = ROOT / "tools" / "use_installed.py"
TYPED = ROOT / "tools" / "use_typed.py"
STUDYING = ROOT / "tools" / "use_studies.py"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command, show it, and return its output; exit with the output if it fails."""
    print("$", *(getattr(part, "name", part) for part in command), flush=True)
    # Use only the installed package: neither this clone nor its cache of compiled code.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "BELATED_CACHE")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}failed: {' '.join(map(str, command))}")
    return done.stdout


def build(project: Path, folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the sdist; the wheel built from the sdist must be identical to that of the clone."""
    run(sys.executable, "-m", "build", "--outdir", folder / "of-sdist", project)  # the sdist, and a wheel made of it
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder / "of-clone", project)
    (sdist,), (wheel,), (other,) = (
        list((folder / place).glob(kind))
        for place, kind in (("of-sdist", "*.tar.gz"), ("of-sdist", "*.whl"), ("of-clone", "*.whl"))
    )
    ours, theirs = (
        {name: each.read(name) for name in each.namelist()} for each in map(zipfile.ZipFile, (wheel, other))
    )
    if ours != theirs:
        differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        sys.exit(f"the sdist builds another wheel than the clone: {', '.join(differing)}")
    return wheel, sdist


def check_contents(source: Path, wheel: Path, sdist: Path, also: set[str]) -> None:
    """Exit unless the wheel has exactly the files of the package, and the sdist has `also`."""
    listed = run("git", "ls-files", source).split()
    expected = {str((ROOT / name).relative_to(source.parent)) for name in listed if (ROOT / name).exists()}
    names = set(zipfile.ZipFile(wheel).namelist())
    found = {name for name in names if ".dist-info/" not in name}
    if found != expected:
        sys.exit(f"{wheel.name} lacks {sorted(expected - found)} and has {sorted(found - expected)} beyond the package")
    if not any(name.endswith("licenses/LICENSE") for name in names):
        sys.exit(f"{wheel.name} lacks the licence")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    absent = {"pyproject.toml", "LICENSE", "README.md", "tests/conftest.py", *also} - inside
    if absent:
        sys.exit(f"{sdist.name} lacks {sorted(absent)}")
    print(f"{wheel.name} has the {len(found)} files of the package and nothing else")


def install(python: str | Path, *wheels: str | Path) -> None:
    """Install `wheels` into the environment of `python`."""
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels)


def main(python: str = sys.executable) -> None:
    """Build, check, install and use."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        wheel, sdist = build(ROOT, folder / "library")
        studies, of_studies = build(STUDIES, folder / "studies")
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, studies, of_studies)
        check_contents(ROOT / "src" / "belated", wheel, sdist, {"CHANGELOG.md", "Makefile"})
        check_contents(STUDIES / "src" / "belated_studies", studies, of_studies, set())
        work = folder / "work"
        work.mkdir()
        for program in (IN_USE, TYPED, STUDYING):
            shutil.copy(program, work)
        run(python, "-m", "venv", folder / "clean")
        inside = folder / "clean" / ("Scripts" if os.name == "nt" else "bin") / "python"
        install(inside, wheel)
        print(run(inside, IN_USE.name, cwd=work), end="")
        typing = ("--strict", "--python-executable", inside, "--cache-dir", folder / "types", "--config-file=")
        print(run(sys.executable, "-m", "mypy", *typing, TYPED.name, cwd=work), end="")
        run(inside, TYPED.name, cwd=work)
        install(inside, f"{wheel}[plots,data,gym]", f"{studies}[exploration]")
        print(run(inside, STUDYING.name, cwd=work), end="")
        tried = run(python, "--version").strip()
        print(f"{wheel.name}, {sdist.name}, {studies.name} and {of_studies.name} are ready, tried with {tried}")


if __name__ == "__main__":
    main(*sys.argv[1:])

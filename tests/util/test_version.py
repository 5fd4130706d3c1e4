"""What made a file: the version that is installed, and a digest of what results depend on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import belated
from belated._util.version import SURFACES, code_digest, stamp


def test_the_version_is_the_package_s() -> None:
    assert stamp() == {"belated": belated.__version__, "code": code_digest()}


def digest_of(package: Path) -> str:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import belated._util.version as v; print(v.code_digest())"
    command = [sys.executable, "-S", "-c", program, str(package.parent)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env={}).stdout.strip()


def test_the_digest_changes_with_what_is_computed_and_not_with_what_is_shown(tmp_path: Path) -> None:
    package = tmp_path / "belated"
    shutil.copytree(Path(belated.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").write_text("")
    before = digest_of(package)
    for surface in SURFACES:
        (package / f"{surface}.py").write_text("shown = 1")
    assert digest_of(package) == before
    source = (package / "_kernels" / "planning.py").read_text(encoding="utf-8")
    for changed in (source + "# another", source.replace("max", "min", 1)):  # the second is as long as before
        (package / "_kernels" / "planning.py").write_text(changed, encoding="utf-8")
        assert digest_of(package) != before

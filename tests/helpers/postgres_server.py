"""A PostgreSQL server for the tests, if there is one to start."""

from __future__ import annotations

import glob
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _tool(name: str) -> str | None:
    places = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)  # noqa: PTH207
    return places[0] if places else shutil.which(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server that lives as long as the tests; its tables are those of the test before."""
    pytest.importorskip("psycopg", reason="needs psycopg")
    initdb, start = _tool("initdb"), _tool("pg_ctl")
    if initdb is None or start is None:
        pytest.skip("needs initdb and pg_ctl of a PostgreSQL server")
    folder = Path(tempfile.mkdtemp(prefix="belated-postgres-"))  # pytest may sweep its own before the server stops
    user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        runuser = shutil.which("runuser")
        if runuser is None or subprocess.run(["id", "-u", "postgres"], capture_output=True).returncode:
            pytest.skip("needs a user other than root, such as postgres, to run a PostgreSQL server")
        user = [runuser, "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)
    data = folder / "data"
    quiet = {"check": True, "capture_output": True, "cwd": "/"}
    subprocess.run([*user, initdb, "-D", str(data), "-A", "trust", "-U", "postgres", "-N"], **quiet)  # type: ignore[call-overload]
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    log = str(folder / "log")
    subprocess.run([*user, start, "-D", str(data), "-l", log, "-w", "-o", options, "start"], **quiet)  # type: ignore[call-overload]
    stop = shlex.join([*user, start, "-D", str(data), "-m", "immediate", "stop"])
    # Whatever ends this process closes the pipe: then the guard stops the server.
    script = f"cd /; trap '' INT TERM HUP; cat; {stop} && rm -rf {shlex.quote(str(folder))}"
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as guard:
        assert guard.stdin is not None
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            guard.stdin.close()


@pytest.fixture
def postgres_address(postgres: str) -> str:
    """The address of an empty store."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS belated CASCADE")
    return postgres

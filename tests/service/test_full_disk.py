"""A disk that is really full: the service says so, loses nothing, and goes on by itself when there is space."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from serving import CONTEXT, MODELS, Line, free_port, start

from belated.decisions import Model, SQLiteStore

SIZE = 16 << 20
WITHIN = ["unshare", "--map-root-user", "--mount", "sh", "-c"]


def have_small_disks() -> bool:
    """Tell whether a disk of our own can be mounted, which nobody else sees."""
    try:
        tried = [*WITHIN, 'mount -t tmpfs -o size=1m tmpfs "$0"', "/tmp"]
        return subprocess.run(tried, capture_output=True).returncode == 0
    except OSError:
        return False


class Disk:
    """A small file system in memory; it lives as long as the service on it does."""

    def __init__(self, folder: Path) -> None:
        (folder / "models.toml").write_text(MODELS)
        (folder / "disk").mkdir()
        mount = f'mount -t tmpfs -o size={SIZE} tmpfs disk && exec "$@"'
        self.port = free_port()
        self.process = start(folder, self.port, store="disk/d.db", within=[*WITHIN, mount, "sh"])
        self.inside = Path(f"/proc/{self.process.pid}/root") / (folder / "disk").relative_to("/")

    def fill(self) -> None:
        """Leave no byte."""
        with (self.inside / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        assert os.statvfs(self.inside).f_bavail == 0

    def free(self) -> None:
        """Give the space back."""
        (self.inside / "ballast").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if not have_small_disks():
        pytest.skip("needs unshare and a kernel that lets users mount a tmpfs of their own")
    made = Disk(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


class Clerk:
    """Sends, and writes down what was acknowledged and what was refused."""

    def __init__(self, port: int) -> None:
        self.line, self.rewards, self.refused, self.sent = Line(port), {}, 0, 0  # type: Line, dict[str, float], int, int

    def send(self) -> int:
        """Decide and reward once; return the code of the last answer."""
        code, made = self.ask("decide", CONTEXT)
        if code != 200:
            return code
        self.rewards[made["id"]] = 0.0
        self.sent += 1
        body = {"id": made["id"], "event": "e", "reward": float(self.sent)}
        code, _ = self.ask("feedback", body)
        if code == 200:
            self.rewards[made["id"]] = float(self.sent)
        return code

    def ask(self, what: str, body: Any) -> tuple[int, Any]:
        code, found = self.line.ask(f"/v1/models/ads/{what}", body)
        assert code in (200, 503), found
        if code == 503:
            assert "no space left" in found["error"]
            self.refused += 1
        return code, found


def wait_until_ready(line: Line) -> None:
    """Wait as a load balancer would: without sending anything else."""
    deadline = time.monotonic() + 30
    while line.ask("/health/ready")[0] != 200:
        assert time.monotonic() < deadline, "there is space, and it is not ready again"
        time.sleep(0.05)


def test_a_full_disk_refuses_loses_nothing_and_goes_on(disk: Disk, tmp_path: Path) -> None:
    clerk = Clerk(disk.port)
    for turn in range(3):
        for _ in range(20):
            assert clerk.send() == 200
        disk.fill()
        tries = 0
        while clerk.send() == 200:  # what SQLite has room for in pages it already has
            tries += 1
            assert tries < 10_000
        for _ in range(5):
            assert clerk.send() == 503
        code, health = clerk.line.ask("/health/ready")
        assert code == 503 and "no space left" in health["problem"]
        assert clerk.line.ask(f"/v1/decisions/{next(iter(clerk.rewards))}")[0] == 200  # reading goes on
        disk.free()
        wait_until_ready(clerk.line)
        assert clerk.send() == 200, turn
    for made, reward in clerk.rewards.items():
        code, found = clerk.line.ask(f"/v1/decisions/{made}")
        assert (code, found["reward"] or 0.0) == (200, reward)
    assert clerk.refused >= 18
    clerk.line.close()
    disk.process.send_signal(signal.SIGSTOP)  # the files as a crash leaves them
    for path in disk.inside.glob("d.db*"):
        shutil.copy(path, tmp_path)
    store = SQLiteStore(tmp_path / "d.db")
    model = Model("ads", None, store)
    assert store.check("ads") == [] and model.verify() == []
    assert {entry.id: entry.reward or 0.0 for entry in model.log()} == clerk.rewards
    store.close()
    print(f"\nfull three times: {clerk.refused} requests refused, {len(clerk.rewards)} decisions kept, none lost")

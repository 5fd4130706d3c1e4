"""Ids: no two alike, whoever makes them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from belated.decisions._ids import new_id, time_of

FORK = """
import os
from belated.decisions._ids import new_id
new_id(1.0)  # some are made beforehand
reads, writes = os.pipe()
child = os.fork()
os.write(writes, " ".join([new_id(1.0) for _ in range(20)] + [""]).encode())
if child:
    os.waitpid(child, 0)
    print(len(set(os.read(reads, 10_000).split())))
"""


def test_threads_never_get_the_same() -> None:
    made: list[str] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id(5.0) for _ in range(2000))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(made)) == 8000
    assert {time_of(each) for each in made} == {5.0}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_process_that_forks_shares_none_with_its_child() -> None:
    found = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["40"]

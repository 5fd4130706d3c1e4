import runpy
import sys

import pytest

AGENTS = ["DelayedPSVI", "DelayedUCBVI", "EpsilonGreedy", "RandomPolicy"]


def test_running_the_package_plays_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["belated"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("belated", run_name="__main__")
    assert not stopped.value.code
    printed = capsys.readouterr().out
    assert all(agent in printed for agent in AGENTS)
    assert "episode 1,000 of 1,000" in printed


def test_running_the_package_with_arguments_is_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["belated", "list", "delays"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("belated", run_name="__main__")
    assert not stopped.value.code
    assert "poisson" in capsys.readouterr().out

import io

from rich.console import Console

from belated._cli.demo import AGENTS, FAIR, play_demo


def test_outside_a_terminal_the_demo_prints_its_final_state_at_once() -> None:
    out = io.StringIO()
    play_demo(Console(file=out, width=80), episodes=120, seconds=3600)
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines if "%  " in line] == [type(agent).__name__ for agent in AGENTS]
    assert "episode 120 of 120" in lines[0]
    assert "in flight" in out.getvalue()
    told = " ".join(" ".join(lines[-6:]).split())
    assert "episodes late" in told
    assert FAIR in told
    assert "\x1b" not in out.getvalue()
    assert max(len(line) for line in lines) <= 80
    assert "…" not in out.getvalue(), "nothing is cut"


def test_in_a_terminal_the_demo_is_told_frame_by_frame() -> None:
    out = io.StringIO()
    play_demo(Console(file=out, width=80, force_terminal=True), episodes=60, seconds=0.5)
    frames = [line for line in out.getvalue().splitlines() if " of 60" in line]
    assert len(frames) >= 3
    assert "episode 60 of 60" in frames[-1]

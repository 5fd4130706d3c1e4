from __future__ import annotations

import io
import itertools

import numpy as np
import polars as pl
from rich.console import Console

from belated._cli.demo import AGENTS, FAIR, Replay, play_demo
from belated.runner import Results


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


EPISODES = 400


def made(good: int = 100) -> Results:
    """Return rows of a learner that is perfect from episode `good` on, and of one that never is; delays of 10."""
    episode = np.arange(EPISODES)
    values = {"learner": np.where(episode < good, 2.0, 10.0), "idler": np.full(EPISODES, 2.0)}
    frames = [
        pl.DataFrame(
            {
                "environment": "river",
                "delay_distribution": "constant-10",
                "agent": agent,
                "seed": 0,
                "episode": episode,
                "delay": 10,
                "arrived": np.where(episode > 10, 1, 0),
                "value": value,
                "optimal": 10.0,
            }
        )
        for agent, value in values.items()
    ]
    return Results(pl.concat(frames))


def shown(replay: Replay, episode: int) -> dict[str, list[str]]:
    out = io.StringIO()
    Console(file=out, width=80).print(replay.frame(episode))
    lines = [line.split() for line in out.getvalue().splitlines() if "%" in line]
    assert f"episode {episode:,} of {EPISODES:,}" in out.getvalue()
    return {cells[0]: cells[1:] for cells in lines}


def test_a_frame_tells_share_trajectories_in_flight_and_regret() -> None:
    replay = Replay(made())
    assert shown(replay, 50)["learner"][1:] == ["20%", "11", "400"]
    assert shown(replay, 400)["learner"][1:] == ["100%", "11", "800"]
    assert shown(replay, 400)["idler"][1:] == ["20%", "11", "3,200"]
    assert shown(replay, 5)["learner"] == ["20%", "5", "40"], "too early for the first character of the curve"


def test_a_curve_grows_without_changing_what_is_drawn() -> None:
    replay = Replay(made())
    curves = [shown(replay, episode)["learner"][0] for episode in range(50, 401, 50)]
    assert [len(curve) for curve in curves] == [31 * episode // 400 for episode in range(50, 401, 50)]
    for earlier, later in itertools.pairwise(curves):
        assert later.startswith(earlier)
    assert curves[-1][0] == "▂"
    assert curves[-1][-1] == "█"


def test_the_takeaway_is_two_sentences_made_of_the_numbers() -> None:
    assert Replay(made()).takeaway() == (
        "With every trajectory about 10 episodes late, learner reached 90% of the optimum after 109 episodes "
        "and paid a regret of 800. idler met the same delays and paid 3,200, 4.0 times as much."
    )


def test_the_takeaway_when_nobody_got_far() -> None:
    text = Replay(made(good=EPISODES)).takeaway()
    assert "learner got to 20% of the optimum in 400 episodes and paid a regret of 3,200." in text
    assert text.endswith("paid 3,200, 1.0 times as much.")


def test_the_takeaway_when_there_was_nothing_to_pay() -> None:
    text = Replay(made(good=0)).takeaway()
    assert "paid a regret of 0. idler" in text
    assert text.endswith("paid 3,200.")

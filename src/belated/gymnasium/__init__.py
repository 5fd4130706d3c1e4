"""Gymnasium wrappers for late feedback, and belated's environments under Gymnasium ids.

Importing this needs the extra `belated[gym]`, and registers the ids.

>>> import gymnasium
>>> env = gymnasium.make("belated/NChain-v0", size=50, render_mode="ansi")
>>> state, info = env.reset(seed=0)
>>> print(env.render())
nchain-50: step 0 of 58
.@......................................
..........
"""

from belated.environments._gym_bridge import IDS, register_all

register_all()  # the error names the extra if Gymnasium is missing

from belated.gymnasium._assembler import Assembler, Piece, pieces  # noqa: E402
from belated.gymnasium._in_flight import Transition  # noqa: E402
from belated.gymnasium._late_feedback import LateFeedback, LateFeedbackVector  # noqa: E402
from belated.gymnasium._stable_baselines3 import ArrivedOnly, WithTheNextStep  # noqa: E402

__all__ = [
    "IDS",
    "ArrivedOnly",
    "Assembler",
    "LateFeedback",
    "LateFeedbackVector",
    "Piece",
    "Transition",
    "WithTheNextStep",
    "pieces",
]

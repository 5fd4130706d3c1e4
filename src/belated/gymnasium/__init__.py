"""What belated adds to Gymnasium: wrappers for late feedback, and environments under ids of their own.

Importing this needs the extra `belated[gym]`, and registers the ids.

>>> import gymnasium
>>> env = gymnasium.make("belated/NChain-v0", size=50, render_mode="ansi")
>>> state, info = env.reset(seed=0)
>>> print(env.render())
nchain-50: step 0 of 58
.@......................................
..........
"""

from belated.environments.gym import load_gymnasium

load_gymnasium()  # says what to install where there is none

from belated.gymnasium.in_flight import Transition  # noqa: E402
from belated.gymnasium.late_feedback import LateFeedback  # noqa: E402
from belated.gymnasium.late_feedback_vector import LateFeedbackVector  # noqa: E402
from belated.gymnasium.registered import IDS, register_all  # noqa: E402

register_all()

__all__ = ["IDS", "LateFeedback", "LateFeedbackVector", "Transition"]

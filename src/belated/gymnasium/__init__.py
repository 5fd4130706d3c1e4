"""What belated adds to Gymnasium: wrappers for late feedback. Importing this needs the extra `belated[gym]`."""

from belated.environments.gym import load_gymnasium

load_gymnasium()  # says what to install where there is none

from belated.gymnasium.in_flight import Transition  # noqa: E402
from belated.gymnasium.late_feedback import LateFeedback  # noqa: E402
from belated.gymnasium.late_feedback_vector import LateFeedbackVector  # noqa: E402

__all__ = ["LateFeedback", "LateFeedbackVector", "Transition"]

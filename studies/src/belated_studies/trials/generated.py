"""Generated trials: arms of different speed, heavy tails, refunds, day and night, and the scene of the service."""

from __future__ import annotations

from belated.environments.trials import GENERATED
from belated_studies.reports.document import Section
from belated_studies.study import Artefact, Played
from belated_studies.trials.settings import RATIOS, Case, Size, compared, experiments, findings, regret_table

SCENE = Case("slow-and-good", 20_000, 20_000 / 6000, recorded=False)
"""10 % after 1 500 s on average and 5 % after 20 s, a window of 6 000 s, a decision each second."""
CASES = [Case(trial, 2000, ratio, recorded=False) for trial in GENERATED for ratio in RATIOS if trial != SCENE.trial]


def section(played: Played[Size]) -> Section:
    """Return regret on all of them."""
    paragraph = (
        "Here events are good: they are conversions. slow-and-good: one arm converts 10 %, after 1 500 s on average, "
        "the other 5 %, after 20 s; the window is 6 000 s, with a decision each second. speeds: four arms, of which "
        "the faster ones are mostly worse. heavy-tails: delays without a finite mean. refunds: arms that sell much "
        "and get much returned, which is known late. day-and-night: nine times as many visitors at noon as at "
        "midnight, so that the age of a decision in rounds is not its age in hours."
    )
    rows = compared(played, [SCENE, *CASES])
    table = regret_table("generated-table", "Missed conversions", "Generated trials.", rows)
    return Section(id="generated", title="Generated trials", paragraphs=[paragraph], tables=[table])


def told(played: Played[Size]) -> list[str]:
    """Return the findings."""
    (scene,) = compared(played, [SCENE])
    less = -100 * scene.change.value
    first = f"A slow good arm beside a fast bad one: {less:.0f} % less regret than one window."
    return [first, *findings("Generated trials", compared(played, CASES))]


ARTEFACT = Artefact(
    id="generated", order=2, section=section, experiments=lambda size: experiments([SCENE, *CASES], size), findings=told
)

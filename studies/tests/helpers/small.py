"""A part of the paper: fewer seeds, and fewer episodes than any of its numbers needs."""

from __future__ import annotations

from belated_studies.paper.setting import FULL

SMALL = FULL.resized(seeds=6, episodes=1500)

"""The stated rule by which a measured number is compared with a published one.

* **reproduced**: the measured number is within 5 % of the published one (25 % for a count of episodes).
* **ordering reproduced**: it is not, but the agent stands to every other agent of its column as it does in the paper.
  Agents whose published numbers are themselves within that tolerance of each other may come in either order.
* **not reproduced**: neither.
"""

from __future__ import annotations

from collections.abc import Mapping

RETURN_TOLERANCE = 0.05
EPISODE_TOLERANCE = 0.25

RULE = (
    "A number is **reproduced** if it is within 5 % of the published one (25 % for counts of episodes). Otherwise its "
    "**ordering is reproduced** if the agent stands to every other agent of its column as in the paper, where agents "
    "whose published numbers are within the same tolerance of each other may come in either order. "
    "Otherwise it is **not reproduced**."
)


def close(left: float, right: float, tolerance: float) -> bool:
    """Return whether `left` is within `tolerance` of `right`, relative to `right`.

    >>> close(11.0, 11.5, 0.05), close(11.5, 11.0, 0.01)
    (True, False)
    """
    return abs(left - right) <= tolerance * abs(right)


def verdict(agent: str, measured: Mapping[str, float], published: Mapping[str, float], tolerance: float) -> str:
    """Return the verdict on `agent`, given the numbers of all agents of its column.

    >>> published = {"psvi": 11.5, "lpsvi": 11.4, "ucbvi": 7.2}
    >>> verdict("ucbvi", {"psvi": 11.96, "lpsvi": 11.9, "ucbvi": 9.0}, published, 0.05)
    'ordering reproduced'
    >>> verdict("ucbvi", {"psvi": 8.0, "lpsvi": 11.9, "ucbvi": 9.0}, published, 0.05)
    'not reproduced'
    """
    if close(measured[agent], published[agent], tolerance):
        return "reproduced"
    for other in published:
        theirs = published[agent] - published[other]
        ours = measured[agent] - measured[other]
        if not close(published[agent], published[other], tolerance) and theirs * ours <= 0:
            return "not reproduced"
    return "ordering reproduced"

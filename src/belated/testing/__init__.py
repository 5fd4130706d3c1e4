"""Checks of the contracts of agents, delay distributions and environments: for ours and for yours."""

from belated.testing._agents import AGENT_CHECKS, check_agent
from belated.testing._delays import check_delay

__all__ = ["AGENT_CHECKS", "check_agent", "check_delay"]

"""Conformance checks for agents, delay distributions and environments, built-in and yours."""

from belated.testing._agents import AGENT_CHECKS, check_agent
from belated.testing._delays import DELAY_CHECKS, check_delay
from belated.testing._environments import ENVIRONMENT_CHECKS, check_environment

__all__ = ["AGENT_CHECKS", "DELAY_CHECKS", "ENVIRONMENT_CHECKS", "check_agent", "check_delay", "check_environment"]

"""An algorithm of the library behind an agent of another class, so that the runner asks it in Python."""

from belated.testing._agents import InPython

__all__ = ["InPython"]

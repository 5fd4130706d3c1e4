"""Compiled code: how it is compiled, linear algebra, planning, random numbers."""

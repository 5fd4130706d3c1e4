"""Compiled code: decorators and cache, linear algebra, planning, random numbers."""

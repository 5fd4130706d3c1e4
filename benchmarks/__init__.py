"""Measures the library against a naive program, other packages and the limits of the machine."""

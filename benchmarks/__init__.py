"""Measures the library beside a naive program, other packages and the limits of the machine."""

"""Attacks on what the library promises: `make attack`, or `python -m attacks`."""

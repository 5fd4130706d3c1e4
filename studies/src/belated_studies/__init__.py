"""Studies: experiments with a report. One folder a study, one file an artefact.

A new study is a package with a `STUDY`, a line in `commands` and one in the entry points of pyproject.toml.
"""

"""Studies: experiments with a report. One folder a study, one file an artefact."""

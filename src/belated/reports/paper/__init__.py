"""The report on the paper: every figure and table beside the published numbers."""

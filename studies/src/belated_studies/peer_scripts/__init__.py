"""Scripts that are run in the environment of another package, and import nothing of this one."""

"""Programs that time other packages, each run by the Python of an environment that has that package."""

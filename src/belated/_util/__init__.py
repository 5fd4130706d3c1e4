"""Private helpers without dependencies on the rest: validation, files, plugins, version, progress, plot style."""

"""What everything else stands on: validation, files, plugins, versions, progress, plot style."""

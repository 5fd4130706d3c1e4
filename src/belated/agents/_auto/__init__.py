"""The untuned rule of `AutoPSVI`: its constants, its regressions on tables and features, its store."""

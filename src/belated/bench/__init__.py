"""Speed as ratios, measured side by side on your machine: `belated bench`."""

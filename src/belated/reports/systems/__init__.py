"""The study that compares every system on common testbeds."""

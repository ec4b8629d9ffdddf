"""Schedules: what they are, which are legal, how they are ranked, and one lowering a file."""

"""Seconds and memory, never accuracy. `make bench` prints every figure as a ratio of two."""

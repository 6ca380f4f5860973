"""Benchmarks of time and memory, mostly as ratios. Run them with `make bench`."""

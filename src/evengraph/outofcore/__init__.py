"""Graphs larger than memory: propagation in blocks, tables on disk, and models that learn rows."""

"""Fuzzing: mutate valid files and read them; anything but a graph or a one-line error fails."""

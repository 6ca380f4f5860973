"""Mutation testing: change the library in one place, and see whether its tests notice."""

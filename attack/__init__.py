"""Attacks on the library: what it must survive, repeatable from a seed."""

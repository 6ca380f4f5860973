"""Node classification when the classes are unequal."""

__version__ = "0.1.0"

"""The figure of an explanation."""

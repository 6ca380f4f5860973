"""A method and a data set for evengraph, found through entry points."""

"""Plain reference mathematics on tensors: the building blocks of methods."""

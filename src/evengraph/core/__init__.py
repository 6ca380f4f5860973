"""The base of all packages: tasks, seeds, records, the store, atomic file writes."""

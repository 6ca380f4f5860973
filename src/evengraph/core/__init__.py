"""What every room stands on: tasks, seeds, records, the store, atomic file writes."""

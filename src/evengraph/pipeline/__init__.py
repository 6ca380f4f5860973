"""From tables to predictions: load, explain."""

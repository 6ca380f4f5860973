"""The base of all packages: tasks, seeds, records, errors, files and what comes from them."""

"""The contract of methods and data sets as functions, with or without pytest."""

from evengraph.testing.contract import (
    METHOD_CHECKS,
    check_dataset,
    check_method,
    small_task,
    task_with,
)

__all__ = ["METHOD_CHECKS", "check_dataset", "check_method", "small_task", "task_with"]

"""The contract of methods and data sets as functions, with or without pytest."""

from evengraph.testing.dataset import check_dataset
from evengraph.testing.method import METHOD_CHECKS, check_method
from evengraph.testing.tasks import small_task, task_with

__all__ = ["METHOD_CHECKS", "check_dataset", "check_method", "small_task", "task_with"]

"""A Ray cluster: one that runs, or one that is started on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evengraph.core.errors import MissingPackageError, first_line


@contextmanager
def connected_ray(address: str | None = None, cores: int | None = None) -> Iterator[Any]:
    """The module `ray`, connected to a cluster; a connection that exists is used and left open.

    Args:
        address: Of a cluster, such as `auto` on one of its machines. Default: Ray starts one here.
        cores: How many such a new one has. Default: those of this machine.
    """
    try:
        import ray
    except ImportError:
        message = "Ray is not installed; try: pip install 'evengraph[ray]'."
        raise MissingPackageError(message) from None

    started = not ray.is_initialized()
    if started:
        new = {} if address else {"num_cpus": cores, "include_dashboard": False}
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **new)
        except Exception as error:  # of no class of its own where a start takes too long
            raise OSError(f"Ray did not start: {first_line(error)}.") from None
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()

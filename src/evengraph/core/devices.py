"""Devices: by their name, and their free memory."""

from __future__ import annotations

import torch

from evengraph.core.machine import available_memory
from evengraph.core.ranks import Ranks


def pick_device(name: str | torch.device) -> torch.device:
    """A device by its name; `auto` is the first GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N, got {str(name)!r}.")
    count = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        raise ValueError(f"There is no device {name}: torch sees {count} GPU(s).")
    return device


def pick_rank_device(name: str, ranks: Ranks) -> torch.device:
    """A device for one of several processes: those of a machine need a GPU each.

    Where there are too few, `auto` is the CPU.
    """
    device, count = pick_device(name), torch.cuda.device_count()
    if device.type == "cpu" or ranks.here <= count:
        return device
    if name == "auto":
        return torch.device("cpu")
    raise ValueError(
        f"device must be cpu for {ranks.here} processes on a machine with {count} GPU(s): each "
        "needs a GPU of its own."
    )


def free_memory(device: torch.device) -> int:
    """Bytes that this process can still take on a device."""
    if device.type != "cuda":
        return available_memory()
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))

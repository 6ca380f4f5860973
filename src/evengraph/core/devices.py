"""Devices: by their name, and their free memory."""

from __future__ import annotations

import torch

from evengraph.core.machine import available_memory


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


def free_memory(device: torch.device) -> int:
    """Bytes that this process can still take on a device."""
    if device.type != "cuda":
        return available_memory()
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))

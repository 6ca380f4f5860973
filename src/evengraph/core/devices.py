"""pick_device(): a device by its name."""

from __future__ import annotations

import torch


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

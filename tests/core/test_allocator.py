"""What the C library is told; that it obeys shows in page faults."""

import ctypes
import subprocess
import sys

import pytest

from evengraph.core import machine as allocator

FAULTS = """
import resource, sys
from evengraph.core.machine import keep_freed_memory
import ctypes
if sys.argv[1] == "keep":
    assert keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
size = 2**26
for _ in range(4):
    array = libc.malloc(size)
    ctypes.memset(array, 1, size)
    libc.free(array)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.fixture
def calls(monkeypatch):
    """Calls of the C library instead of its effects."""
    made = []

    class Library:
        def mallopt(self, *arguments):
            made.append(arguments)
            return 1

    for name in ("MALLOC_MMAP_MAX_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    return made


def test_large_arrays_come_from_the_heap_which_is_never_trimmed(calls):
    assert allocator.keep_freed_memory()
    assert calls == [(-4, 0), (-1, -1)]


def test_settings_of_the_user_stay(calls, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not allocator.keep_freed_memory()
    assert not calls


def test_other_systems_and_c_libraries_are_left_alone(calls, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not allocator.keep_freed_memory()
    allocator.return_freed_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not allocator.keep_freed_memory()
    assert not calls


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_pages_are_cleared_once():
    faults = {}
    for mode in ("plain", "keep"):
        done = subprocess.run(
            [sys.executable, "-c", FAULTS, mode], capture_output=True, text=True, check=True
        )
        faults[mode] = int(done.stdout)
    assert faults["keep"] < 0.6 * faults["plain"]

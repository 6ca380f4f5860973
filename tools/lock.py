"""Write the lock files: every package of development, exact versions, hashes of all their files.

    make lock                                    # after a change of pyproject.toml
    python -m tools.lock --upgrade-package ruff  # arguments go to `uv pip compile`

uv resolves for all platforms and Pythons at once and keeps the versions of the present lock where
it can. The libraries that torch needs on a GPU go to a file of their own: torch's CPU builds do
not want those gigabytes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-dev.lock"
CUDA_LOCK = ROOT / "requirements-cuda.lock"
CPU_LOCK = ROOT / "requirements-cpu.lock"

# The tests run with this torch. A release of torch changes results in the last digits, so it is
# chosen here, not by the resolver.
TORCH = "2.13.0"
# Its CPU build for Python 3.11 on Linux (x86-64), which is published apart from the default build.
CPU_BUILD = "sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
CPU = "torch's CPU build for Linux and Python 3.11, installed instead where pip finds it"

HEADER = """\
# {what}, with the hashes of all files.
# Written by `make lock` (uv pip compile --universal --generate-hashes); do not edit.
"""


def resolve(current: str, arguments: list[str]) -> str:
    """Return the lock of all packages as uv writes it, close to the current one."""
    with tempfile.TemporaryDirectory() as folder:
        constraints, output = Path(folder, "constraints.txt"), Path(folder, "lock.txt")
        constraints.write_text(f"torch=={TORCH}\n")
        output.write_text(current)
        command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml"]
        command += ["--extra", "all", "--group", "dev", "--universal", "--python-version", "3.11"]
        command += ["--generate-hashes", "--no-annotate", "--no-header", "--no-config", "--quiet"]
        command += ["--constraint", str(constraints), "--output-file", str(output), *arguments]
        subprocess.run(command, cwd=ROOT, check=True)
        return output.read_text()


def split(lock: str) -> tuple[str, str]:
    """Divide uv's lock into what everyone needs and what only torch's CUDA build needs."""
    entries = re.split(r"\n(?=\S)", lock.strip())
    cuda = [entry for entry in entries if re.match(r"nvidia-|cuda-", entry)]
    others = [entry for entry in entries if entry not in cuda]
    return "\n".join(others) + "\n", "\n".join(cuda) + "\n"


def main() -> None:
    """Resolve and write both files."""
    files = [path.read_text() for path in (LOCK, CUDA_LOCK) if path.exists()]
    everyone, cuda = split(resolve("".join(files), sys.argv[1:]))
    LOCK.write_text(HEADER.format(what="Every package that the tests run with") + everyone)
    CPU_LOCK.write_text(
        HEADER.format(what=CPU) + f"torch=={TORCH}+cpu \\\n    --hash={CPU_BUILD}\n"
    )
    CUDA_LOCK.write_text(HEADER.format(what="What torch's CUDA build for Linux needs") + cuda)


if __name__ == "__main__":
    main()

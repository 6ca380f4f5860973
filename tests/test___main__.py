import subprocess
import sys


def test_python_can_run_it_as_a_module():
    call = [sys.executable, "-m", "evengraph", "--version"]
    found = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    assert found.startswith("evengraph")

"""`python -m benchmarks`: print every benchmark."""

import os
import platform
import warnings

os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # silences the profiler's start and stop messages

import torch

warnings.simplefilter("ignore")  # from PyG and torch, about each other

from benchmarks import epoch, methods, preparation, runs, semantic, tables  # noqa: E402

torch.set_num_threads(2)
print(f"Python {platform.python_version()}, torch {torch.__version__}, 2 threads")
for benchmark in (semantic, epoch, runs, methods, preparation, tables):
    benchmark.main()

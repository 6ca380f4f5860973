"""`python -m benchmarks`: print every benchmark."""

import os
import platform
import warnings

os.environ.setdefault("KINETO_LOG_LEVEL", "9")  # the profiler tells when it starts and stops

import torch

warnings.simplefilter("ignore")  # PyG's and torch's own, about each other

from benchmarks import epoch, methods, pieces, runs, semantic  # noqa: E402

torch.set_num_threads(2)
print(f"Python {platform.python_version()}, torch {torch.__version__}, 2 threads")
for benchmark in (semantic, epoch, runs, methods, pieces):
    benchmark.main()

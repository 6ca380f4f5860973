"""`python -m benchmarks`: print every benchmark."""

import platform
import warnings

import torch

warnings.simplefilter("ignore")  # PyG's and torch's own, about each other

from benchmarks import epoch, methods, pieces, semantic  # noqa: E402

torch.set_num_threads(2)
print(f"Python {platform.python_version()}, torch {torch.__version__}, 2 threads")
for benchmark in (semantic, epoch, methods, pieces):
    benchmark.main()

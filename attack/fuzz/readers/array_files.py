"""Graphs as arrays: npz and pt files."""

import numpy as np
import torch
from torch_geometric.data import Data

from attack.fuzz.mutations import VALUES, mutate_zip
from attack.fuzz.readers.base import Reader
from attack.fuzz.readers.graph_arrays import arrays, change_arrays, csr_arrays

LARGEST = 2**26


class Npz(Reader):
    """NumPy archives of a graph."""

    name = "npz"

    def prepare(self, folder):
        np.savez(folder / "dense.npz", **arrays(), edge_weight=np.ones(80))
        np.savez_compressed(folder / "csr.npz", **csr_arrays())

    def change(self, stream, path):
        kind = stream.randrange(4)
        if kind == 0:
            super().change(stream, path)
        elif kind == 1:
            mutate_zip(stream, path)
        else:
            with np.load(path) as file:
                content = dict(file)
            np.savez(path, **change_arrays(stream, content))


class Torch(Reader):
    """Files by torch.save, of a `Data` or a dictionary."""

    name = "pt"

    def prepare(self, folder):
        tensors = self._tensors(arrays())
        torch.save(tensors, folder / "dict.pt")
        torch.save(Data(**tensors), folder / "data.pt")
        torch.save(tensors, folder / "old.pt", _use_new_zipfile_serialization=False)

    @staticmethod
    def _tensors(content):
        def tensor(array):
            try:
                return torch.from_numpy(np.array(array))
            except TypeError:
                return array.tolist()

        return {key: tensor(array) for key, array in content.items()}

    def change(self, stream, path):
        kind = stream.randrange(4)
        if kind == 0:
            super().change(stream, path)
        elif kind == 1 and path.stem != "old":
            mutate_zip(stream, path)
        else:
            content = self._tensors(change_arrays(stream, arrays()))
            for _ in range(stream.choice((0, 1, 2))):
                key = stream.choice(sorted(content))
                content[key] = self._odd(stream, content[key])
            torch.save(content, path)
            if path.stat().st_size > LARGEST:  # it is the file that is large, not what it takes
                torch.save(self._tensors(arrays()), path)

    @staticmethod
    def _odd(stream, value):
        """The same value in another form."""
        forms = [
            lambda t: t.float().requires_grad_(),
            lambda t: t.bfloat16(),
            lambda t: t.to_sparse(),
            lambda t: t.to_sparse_csr(),
            lambda t: t.to_sparse_csc(),
            lambda t: t.to("meta"),
            lambda t: torch.quantize_per_tensor(t.float(), 0.1, 0, torch.qint8),
            lambda t: t.cfloat(),
            lambda t: t[:1].expand(stream.choice((10, 10**6, 10**9)), *t.shape[1:]),
            lambda t: t.tolist(),
            lambda t: torch.sparse_coo_tensor(
                torch.tensor([[stream.randrange(-1, 60) for _ in range(9)] for _ in range(2)]),
                torch.ones(9),
                (30, 4),
                check_invariants=False,
            ),
            lambda t: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
            lambda t: t.to(torch.float8_e4m3fn),
            lambda t: torch.nn.Parameter(t),
            lambda t: stream.choice(VALUES),
            lambda t: {"a": t},
        ]
        if isinstance(value, torch.Tensor) and value.layout != torch.strided:
            return value  # torch itself crashes when it converts indices out of range
        try:
            return stream.choice(forms)(value)
        except (RuntimeError, TypeError, AttributeError, IndexError, ValueError):
            return stream.choice(VALUES)

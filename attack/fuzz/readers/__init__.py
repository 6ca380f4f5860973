"""The readers under attack: how a valid file is written, mutated and read."""

from attack.fuzz.readers.array_files import Npz, Torch
from attack.fuzz.readers.base import Reader as Reader
from attack.fuzz.readers.experiments import Spec, StoreFile
from attack.fuzz.readers.linked import Calibration, Kinds, Links
from attack.fuzz.readers.models import Model
from attack.fuzz.readers.packed import Cache, Packed
from attack.fuzz.readers.requests import Request
from attack.fuzz.readers.schemas import Schemas
from attack.fuzz.readers.tables import Csv, Graphml, Gzip, JsonLines, Parquet

READERS = {
    kind.name: kind()
    for kind in (
        Npz,
        Torch,
        Csv,
        JsonLines,
        Gzip,
        Parquet,
        Graphml,
        Links,
        Kinds,
        Packed,
        Cache,
        Spec,
        Model,
        Schemas,
        Calibration,
        StoreFile,
        Request,
    )
}

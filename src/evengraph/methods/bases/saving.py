"""Model folders: a description and tensors, written completely or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import safetensors.torch
import torch
from torch import Tensor, nn

from evengraph.core.errors import SHOWN, first_line, one_line_errors, short
from evengraph.core.files import compact_number_lists, locked, temporary_folder, write_atomic
from evengraph.core.schema import SchemaError, check_size, read
from evengraph.core.untrusted import MAX_INTEGER, part
from evengraph.report.model_card import MARK, model_card
from evengraph.training.loop import History

FORMAT = 1  # incremented when older versions of evengraph can no longer read what is written
MAIN, CARD = "model.json", "README.md"
# tensors without a description, and temporary files: what a save that was killed leaves
LEFT_BY_SAVE = re.compile(
    r"tensors-[0-9a-f]{12}\.safetensors|\.(model\.json|README\.md|tensors-[^/]*)\.[^/]*"
)
READS = 20  # how often to read a model that others replace meanwhile


class TensorMismatchError(ValueError):
    """Saved tensors whose names or shapes are not those of the module."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What is stored of a fitted method beside its tensors."""

    method: str
    fields: dict[str, Any]
    num_features: int
    num_classes: int
    class_names: tuple[str, ...]
    history: list[History]
    extra: dict[str, Any]
    num_relations: int = 0
    details: dict[str, Any] = field(default_factory=dict)
    evengraph: str = ""  # version

    def __post_init__(self) -> None:
        for name, least in (("num_features", 0), ("num_classes", 1), ("num_relations", 0)):
            if not least <= getattr(self, name) <= MAX_INTEGER:
                raise ValueError(f"{name} must lie between {least} and {MAX_INTEGER}")
        if self.class_names and len(self.class_names) != self.num_classes:
            raise ValueError(f"class_names must be {self.num_classes} names")

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self:
        """Of what a model.json holds."""
        return read(cls, {k: v for k, v in about.items() if k not in ("format", "tensors")})


class Labelled(NamedTuple):
    """The training nodes, and signatures of their features to recognise them by."""

    nodes: Tensor  # int64, (n,)
    labels: Tensor  # int64, (n,)
    signatures: Tensor  # float64, (n, 3)


def checked(
    state: Mapping[str, Tensor], name: str, dims: int, dtype: torch.dtype | None = None
) -> Tensor:
    """A tensor of a file with this number of dimensions and type, by default a floating one."""
    tensor = state[name]
    fits = tensor.is_floating_point() if dtype is None else tensor.dtype == dtype
    if tensor.dim() != dims or not fits:
        kind = str(dtype or "torch.float32").removeprefix("torch.")
        raise TensorMismatchError(
            f"{name} must be {kind} with {dims} dimensions, got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}."
        )
    return tensor


@one_line_errors()
def write_model(
    folder: str | Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor], *, card: str = ""
) -> None:
    """Write a model folder, with its card if there is one, or replace the model in one.

    The JSON file names its file of tensors and is written last, atomically, so that readers see
    either the old model or the new one. A new folder is written under a temporary name and moved.
    """
    folder = Path(folder)
    check_model_folder(folder)
    # a copy of each: safetensors refuses tensors that share memory
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    content: bytes = safetensors.torch.save(plain)
    digest = hashlib.sha256(content).hexdigest()
    name = f"tensors-{digest[:12]}.safetensors"
    main = {"format": FORMAT, "evengraph": _version(), **about}
    main |= {"tensors": {"file": name, "sha256": digest}}
    _as_json(main)  # validates it
    text = _as_json({**main, "seal": seal(main)}).encode()
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = {name: content, MAIN: text}
    if card:
        files[CARD] = card.encode(errors="replace")
    if not folder.exists():
        with temporary_folder(folder) as temporary:
            _write(temporary, files)
            os.chmod(temporary, 0o755)  # it is private at first; models are meant to be shared
            try:
                os.rename(temporary, folder)
                return
            except OSError:
                if not folder.is_dir():  # otherwise another process made it meanwhile
                    raise
    with locked(folder / f".{MAIN}.lock"):
        _write(folder, files)


def make_card(method: Any, about: Mapping[str, Any], folder: str | Path) -> str:
    """The model card of a fitted method, whose description `pack_method` gave."""
    labels, name = method.labelled_.labels, Path(folder).name
    counts = torch.bincount(labels[labels >= 0], minlength=method.num_classes_).tolist()
    date = datetime.now(UTC).date().isoformat()
    members = getattr(method, "members_", [method])
    columns = part(part(about, "extra"), "columns")
    kinds = {
        "edges": [one.uses_graph for one in members],
        "known labels around a node": [one.uses_labels for one in members],
    }
    if columns.get("weight"):
        kinds["weights of edges"] = [one.uses_edge_weights for one in members]
    if method.num_relations_:
        kinds["types of edges apart"] = [one.separate_relations for one in members]
    parts = [[name for name, uses in kinds.items() if any(uses) is used] for used in (True, False)]
    used, ignored = (", ".join(names) for names in parts)
    text = f"Of the graph, predictions use: {used or 'nothing'}{ignored and f'; not: {ignored}'}."
    about = {"evengraph": _version(), "uses": [text], **about}
    return model_card(about, title=method.full_title, counts=counts, folder=name, date=date)


def check_model_folder(folder: Path) -> None:
    """Raise ValueError for a folder that holds something other than a model."""
    if folder.is_dir():
        others = any(not LEFT_BY_SAVE.fullmatch(path.name) for path in folder.iterdir())
        try:
            is_model = _is_ours(json.loads((folder / MAIN).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            is_model = False
        if others and not is_model:
            raise ValueError(f"{folder} holds other files and no model: choose another folder.")
    elif folder.exists() or folder.is_symlink():
        raise ValueError(f"{folder} is a file: choose a folder.")


@one_line_errors()
def read_model(folder: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model's description and tensors; ValueError if damaged or of another format."""
    folder = Path(folder)
    if not folder.exists():
        raise ValueError(f"{folder} does not exist: give the folder that a model was saved in.")
    for _ in range(READS):
        about = _read_description(folder)
        try:
            return about, _tensors(folder, about)
        except (ValueError, OSError):  # another process may be replacing it: read the new model
            if _read_description(folder)["tensors"] == about["tensors"]:
                raise
    raise ValueError(f"{folder} cannot be read: it is being replaced all the time.")


def _read_description(folder: Path) -> dict[str, Any]:
    main = folder / MAIN
    if not main.is_file():
        raise ValueError(f"{folder} is not a model: it has no {MAIN}.")
    try:
        about = json.loads(main.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, or no text
        raise ValueError(f"{main} is damaged: it cannot be read as JSON.") from error
    if not _is_ours(about):
        raise ValueError(f"{folder} is not a model: {main.name} was not written by evengraph.")
    if about["format"] != FORMAT:
        raise ValueError(
            f"{folder} was saved by evengraph {str(about['evengraph'])[:SHOWN]} in format "
            f"{short(about['format'])}, this is {_version()} and reads format {FORMAT}: use that "
            "version, or fit again."
        )
    try:
        check_size(about)
    except SchemaError as error:
        raise ValueError(f"{main} is damaged: {error}.") from None
    if about.pop("seal", None) != seal(about):
        raise ValueError(f"{main} is damaged: it is not what was saved. Copy or save it again.")
    return dict(about)


def seal(about: Mapping[str, Any]) -> str:
    """A hash of a description: with swapped class names, every prediction would be wrong."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def pack(name: str, module: nn.Module) -> dict[str, Tensor]:
    """The tensors of a module, with a prefix on each name."""
    return {f"{name}.{key}": value for key, value in module.state_dict().items()}


def unpack(name: str, module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put tensors back into a module of the same shape."""
    prefix = f"{name}."
    state = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise TensorMismatchError(f"The tensors do not fit {name}.") from error


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the tensors, then the JSON file that names them; then delete what is no part of it.

    The caller holds the folder: no other process writes to it. A README.md of a user stays.
    """
    for name, content in files.items():
        if name != CARD or _is_card(folder / name):
            write_atomic(content, folder / name)
    for other in folder.iterdir():
        if other.name not in files and LEFT_BY_SAVE.fullmatch(other.name):
            other.unlink(missing_ok=True)


def _is_card(path: Path) -> bool:
    """Whether a file is a model card of ours, or there is none."""
    try:
        with path.open("rb") as file:
            return file.read(len(MARK)) == MARK.encode()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_ours(about: Any) -> bool:
    return isinstance(about, dict) and {"format", "evengraph", "method", "tensors"} <= set(about)


def _tensors(folder: Path, about: dict[str, Any]) -> dict[str, Tensor]:
    expected = about["tensors"]
    if not isinstance(expected, dict) or not {"file", "sha256"} <= set(expected):
        raise ValueError(f"{folder / MAIN} is damaged: it does not say where its tensors are.")
    path = folder / Path(str(expected["file"])).name  # always inside this folder
    if not path.is_file():
        raise ValueError(f"{folder} is damaged: {path.name} is missing.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise ValueError(f"{path} is damaged: it is not what was saved. Copy or save it again.")
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except Exception as error:  # of safetensors, which has a class of its own, or of torch
        raise ValueError(f"{path} is damaged: {first_line(error)}.") from None
    return tensors


def _as_json(content: dict[str, Any]) -> str:
    try:
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
        text.encode()  # lone surrogates, as in some file names, have no UTF-8
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error).rstrip(".").replace("\n", " ")
        raise ValueError(f"extra must hold what JSON can, and does not: {reason}.") from error
    return compact_number_lists(text) + "\n"


def _version() -> str:
    from evengraph import __version__

    return __version__

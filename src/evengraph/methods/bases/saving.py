"""Saving: a fitted method as a description and tensors, and back."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from evengraph.core.errors import first_line, one_line_errors
from evengraph.core.files import compact_number_lists, locked, temporary_folder, write_atomic
from evengraph.core.task import count_relations, edge_weight
from evengraph.report.model_card import MARK, model_card
from evengraph.training import History

FORMAT = 1
"""Incremented when older versions of evengraph can no longer read what is written."""

MAIN = "model.json"
CARD = "README.md"

# tensors without a description, and temporary files: what a save that was killed leaves
LEFT_BY_SAVE = re.compile(
    r"tensors-[0-9a-f]{12}\.safetensors|\.(model\.json|README\.md|tensors-[^/]*)\.[^/]*"
)
READS = 20  # how often to read a model that others replace meanwhile


class TensorMismatchError(ValueError):
    """Saved tensors whose names or shapes are not those of the module."""


class Labelled(NamedTuple):
    """The training nodes, and signatures of their features to recognise them by."""

    nodes: Tensor  # int64, (n,)
    labels: Tensor  # int64, (n,)
    signatures: Tensor  # float64, (n, 3)


def pack_method(
    method: Saving,
    state: Mapping[str, Tensor],
    details: Mapping[str, Any],
    extra: Mapping[str, Any] | None,
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Description and tensors of a fitted method, the nodes it was trained on included."""
    params, fitted = method.get_params(), method.fitted_params_
    changed = sorted(name for name in params if params[name] != fitted[name])
    if changed:
        raise ValueError(f"{', '.join(changed)} changed after fitting: fit again, then save.")
    about = {
        "method": type(method).__name__.lower(),
        "fields": fitted,
        "num_features": method.num_features_,
        "num_classes": method.num_classes_,
        "class_names": list(method.class_names_),
        "history": [asdict(history) for history in method.history_],
        "extra": dict(method.extra_ if extra is None else extra),
    }
    if method.num_relations_:
        about["num_relations"] = method.num_relations_
    if details:
        about["details"] = dict(details)
    labelled = {f"labelled.{key}": value for key, value in method.labelled_._asdict().items()}
    return about, {**state, **labelled}


def restore_description(
    method: Saving, about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
) -> dict[str, Tensor]:
    """Set what `pack_method` gave for any method; returns the tensors on the device."""
    state = {name: value.to(device) for name, value in tensors.items()}
    method.num_features_, method.num_classes_ = about["num_features"], about["num_classes"]
    method.num_relations_ = about.get("num_relations", 0)
    method.class_names_, method.extra_ = tuple(about["class_names"]), dict(about["extra"])
    method.history_ = [History(**stage) for stage in about["history"]]
    method.details_ = dict(about.get("details", {}))
    method.fitted_params_, method.device_ = method.get_params(), device
    nodes, labels = (
        checked(state, f"labelled.{name}", 1, torch.int64) for name in ("nodes", "labels")
    )
    signatures = checked(state, "labelled.signatures", 2)
    if not len(nodes) == len(labels) == len(signatures) or (nodes < 0).any():
        raise ValueError("its training nodes do not fit their labels")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < method.num_classes_:
        raise ValueError("the label of a training node is no class")
    method.labelled_ = Labelled(nodes, labels, signatures)
    return state


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
    content = _encoded(tensors)
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
    if not folder.exists() and _write_new(folder, files):
        return
    with locked(folder):
        _write(folder, files)


def make_card(method: Saving, about: Mapping[str, Any], folder: str | Path) -> str:
    """The model card of a fitted method, whose description `pack_method` gave."""
    labels, name = method.labelled_.labels, Path(folder).name
    counts = torch.bincount(labels[labels >= 0], minlength=method.num_classes_).tolist()
    date = datetime.now(UTC).date().isoformat()
    about = {"evengraph": _version(), **about}
    return model_card(about, title=method.full_title, counts=counts, folder=name, date=date)


def _write_new(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Write a folder that does not exist yet; False if another process made it meanwhile."""
    with temporary_folder(folder) as temporary:
        _write(temporary, files)
        os.chmod(temporary, 0o755)  # it is private at first; models are meant to be shared
        try:
            os.rename(temporary, folder)
        except OSError:
            if not folder.is_dir():
                raise
            return False
    return True


def check_model_folder(folder: Path) -> None:
    """Raise ValueError for a folder that holds something other than a model."""
    if folder.is_dir():
        others = any(not LEFT_BY_SAVE.fullmatch(path.name) for path in folder.iterdir())
        if others and not _is_model(folder):
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
        except ValueError:  # another process may be replacing the model: read the new one
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
            f"{folder} was saved by evengraph {about['evengraph']} in format {about['format']!r}, "
            f"this is {_version()} and reads format {FORMAT}: use that version, or fit again."
        )
    if not _is_text(about):
        raise ValueError(f"{main} is damaged: it holds halves of surrogate pairs.")
    if about.pop("seal", None) != seal(about):
        raise ValueError(f"{main} is damaged: it is not what was saved. Copy or save it again.")
    return dict(about)


def seal(about: Mapping[str, Any]) -> str:
    """A hash of a description: with swapped class names, every prediction would be wrong."""
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _is_text(about: Any) -> bool:
    """Whether every string can be printed and written: JSON can escape what UTF-8 cannot hold."""
    try:
        json.dumps(about, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


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

    The caller holds the folder: no other process is writing to it. A README.md that a user wrote
    stays.
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


def _is_model(folder: Path) -> bool:
    try:
        return _is_ours(json.loads((folder / MAIN).read_text(encoding="utf-8")))
    except (OSError, ValueError):
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
        tensors: dict[str, Tensor] = _safetensors().load(content)
    except Exception as error:  # of safetensors, which has a class of its own, or of torch
        raise ValueError(f"{path} is damaged: {first_line(error)}.") from None
    return tensors


def _encoded(tensors: Mapping[str, Tensor]) -> bytes:
    # A copy of each: safetensors refuses tensors that share memory.
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    content: bytes = _safetensors().save(plain)
    return content


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise ValueError("safetensors is not installed; try: pip install safetensors.") from None
    return safetensors.torch


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


BACKBONE_TITLES = {"sage": "GraphSAGE", "gat": "GAT"}
"""Titles of backbones in tables; GCN is not mentioned."""


@dataclass(kw_only=True)
class Traits:
    """Declarations that subclasses override, and what follows from them."""

    title: ClassVar[str]
    """The name in the literature; the name of the class by default."""
    other_names: ClassVar[Sequence[str]] = ()
    """Names under which users look for it, in lower case; errors suggest the method for them."""
    role: ClassVar[Literal["", "baseline", "highlight"]] = ""
    """How figures treat it: as the baseline of a comparison, highlighted, or like any other."""
    portfolio: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Parameters with which `auto` and, if no methods are named, `compare` try it; one mapping per
    candidate. Methods are tried in the order of METHODS."""
    votes: ClassVar[int] = 1
    """How many models it counts as in the average of `auto`."""
    is_quick: ClassVar[bool] = False
    """Whether a fit takes seconds on any graph; `auto` fits such methods early."""
    weighted_edges: ClassVar[bool] = False
    """Whether it propagates along `weighted_adjacency`, so that weights of edges count."""
    separate_relations: ClassVar[bool] = False
    """Whether it averages the neighbours of each relation apart; others use all edges as one."""
    stores_dense: ClassVar[bool] = False
    """Whether fitting stores all features of a node, also where most of them are zero."""
    suits_heterophily: ClassVar[bool] = False
    """Whether to try it on a graph whose neighbours mostly differ in class."""
    search_space: ClassVar[Mapping[str, Sequence[Any]]] = {}
    """Values to try per parameter; they add to or replace those of `shared_search_space`."""
    shared_search_space: ClassVar[Mapping[str, Sequence[Any]]] = {
        "learning_rate": (0.01, 0.003, 0.03),
        "weight_decay": (5e-4, 5e-5, 5e-3),
        "dropout": (0.5, 0.2, 0.7),
        "hidden": (64, 128),
        "network": ("comparison", "plain"),
    }
    selects_itself: ClassVar[bool] = False
    """Whether fitting selects the settings on validation; a budget of settings then tries one."""
    former_params: ClassVar[Mapping[str, str]] = {}
    """Parameters of earlier versions that users may still name, and those that replaced them."""
    tuned_params: ClassVar[frozenset[str]] = frozenset()
    """Parameters that the paper set per graph; changing any other makes it a different method."""
    untuned_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters for a graph that the method was not tuned for, besides patience."""
    own_split_params: ClassVar[Mapping[str, Any]] = {}
    """Parameters where training and validation nodes were drawn at random from a user's labels, and
    may be drawn again."""

    def __init_subclass__(cls) -> None:
        cls.title = vars(cls).get("title", cls.__name__)

    def describe_edges(self, graph: Data) -> str:
        """A sentence about what it does not use of the edges of a graph; empty if it uses all."""
        if not self.uses_graph:
            return ""
        weights = edge_weight(graph) is not None and not self.uses_edge_weights
        relations = bool(count_relations(graph)) and not self.separate_relations
        parts = ["weights"] * weights + ["relations"] * relations
        return f"{self.title} does not use the {' and '.join(parts)} of edges." if parts else ""

    @property
    def changed_params(self) -> list[str]:
        """Names of the parameters that differ from their defaults."""
        return [item.name for item in fields(self) if getattr(self, item.name) != item.default]

    @property
    def full_title(self) -> str:
        """The title, with the backbone if it is not the usual one."""
        backbone = BACKBONE_TITLES.get(getattr(self, "backbone", ""))
        return self.title if backbone is None else f"{self.title} on {backbone}"

    @property
    def uses_graph(self) -> bool:
        """Whether edges have an influence on predictions."""
        return True

    @property
    def uses_edge_weights(self) -> bool:
        """Whether weights of edges have an influence on predictions; attention ignores them."""
        return self.weighted_edges and self.uses_graph and getattr(self, "backbone", "") != "gat"

    @classmethod
    def current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that an older version saved, as this version names them.

        Those that are new since then have their defaults, unless they are given here.
        """
        return dict(params)

    @classmethod
    def renamed_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters as users write them, with `former_params` replaced by what they stand for."""
        former = {name: value for name, value in params.items() if name in cls.former_params}
        others = {name: value for name, value in params.items() if name not in former}
        return others | cls.current_params(former) if former else others

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; none holds another estimator, so `deep` has no effect."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, all of them or, if one is invalid, none; takes effect at the next fit."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}."
                )
        type(self)(**known | params)  # validates them
        for name, value in params.items():
            setattr(self, name, value)
        return self


class Saving(Traits):
    """The state of a fitted method, and how it is saved and restored."""

    fitted_: bool
    loaded_: bool
    history_: list[History]
    num_features_: int
    num_relations_: int
    num_classes_: int
    class_names_: tuple[str, ...]
    fitted_params_: dict[str, Any]
    details_: dict[str, Any]
    extra_: dict[str, Any]
    labelled_: Labelled
    device_: torch.device
    net_: Any

    @property
    def is_fitted(self) -> bool:
        """Whether `fit` has completed."""
        return getattr(self, "fitted_", False)

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise RuntimeError(f"This {self.title} is not fitted yet; call fit first.")

    @final
    def save(self, folder: str | Path, *, extra: Mapping[str, Any] | None = None) -> None:
        """Save the fitted method in a folder, for `evengraph.load_model`, with a model card.

        The folder is written completely or not at all; a model in it is replaced atomically. Of
        the training graph it holds no features and no edges, but the indices and labels of the
        training nodes, and a few sums per node to recognise it by.

        Args:
            folder: A new folder, an empty one, or that of another model.
            extra: Any JSON value, available as `extra_` of the loaded model: column names, the
                state of an encoder. By default that of this model, if it was loaded.
        """
        about, tensors = self.packed(extra)
        write_model(folder, about, tensors, card=make_card(self, about, folder))

    @final
    def packed(
        self, extra: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Description and tensors of the fitted method, as `restore` takes them."""
        self._check_fitted()
        return pack_method(self, self._state(), self._details(), extra)

    @final
    def restore(
        self, about: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> None:
        """Become the fitted method that `packed` describes."""
        self._load_state(restore_description(self, about, tensors, device))
        self.fitted_ = self.loaded_ = True

    def _state(self) -> dict[str, Tensor]:
        """Tensors that predicting needs, by name; by default those of `net_`."""
        if type(self)._build_network is Saving._build_network:
            raise NotImplementedError(
                f"{type(self).__name__} cannot be saved: it has neither _build_network nor _state."
            )
        return pack("net", self.net_)

    def _load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take what `_state` returned, on this method's device."""
        self.net_ = self._network_for(state)
        unpack("net", self.net_, state)

    def _details(self) -> dict[str, Any]:
        """Fitted state that is no tensor, as JSON can hold it; `details_` of a loaded method."""
        return {}

    def _build_network(self) -> nn.Module:
        """A network with initial weights, for `num_features_` and `num_classes_`."""
        raise NotImplementedError

    def _network_for(self, state: Mapping[str, Tensor]) -> Any:
        """A new network, if it is no larger than the tensors of a file that it is to hold.

        The sizes that a file states are not believed: the network is first built without memory.
        """
        layers = getattr(self, "layers", 0)
        if isinstance(layers, int) and layers > len(state):
            raise TensorMismatchError("There are fewer tensors than layers.")
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in self._build_network().parameters())
        if size > sum(tensor.numel() for tensor in state.values()):
            raise TensorMismatchError("The tensors are smaller than the network.")
        return self._new_network()

    def _new_network(self) -> Any:
        return self._build_network().to(self.device_)


def new_network(method: Saving) -> Any:
    """A network of a method with new weights; for fits from elsewhere, in the body of `learn`."""
    return method._new_network()

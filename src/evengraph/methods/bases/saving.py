"""Saving: a fitted method as a description and tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from evengraph.methods.bases.model_folder import (
    Labelled,
    TensorMismatchError,
    make_card,
    pack,
    pack_method,
    restore_description,
    unpack,
    write_model,
)
from evengraph.methods.bases.traits import Traits
from evengraph.training import History


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

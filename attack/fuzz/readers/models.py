"""Folders of saved models."""

import hashlib
import json

import torch

import evengraph as eg
from attack.fuzz.mutations import mutate_array, mutate_bytes, mutate_json
from attack.fuzz.readers.base import NODES, Reader
from attack.fuzz.readers.tables import COLUMNS, SMALL, frames
from evengraph.methods.bases.saving import MAIN, seal


class Model(Reader):
    """Folders of saved models."""

    name = "model"
    methods = ("gcn", "unignn", "boosting", "labelpropagation", "logistic", "embedsmote")

    def prepare(self, folder):
        for name in self.methods:
            fields = {"gcn": {"hidden": 4}}.get(name, {})
            method = eg.METHODS[name](max_epochs=1, **fields)
            model = eg.TableModel(method, refit=False).fit(*self._tables(name), progress=False)
            model.save(folder / name)

    @staticmethod
    def _tables(name):
        """All columns for one of the models, few for the others, which are then read faster."""
        kinds = {"gcn": COLUMNS, "boosting": SMALL["text"], "logistic": SMALL["date"]}
        return frames(frozenset(kinds.get(name, SMALL["number"])))

    def change(self, stream, path):
        kind = stream.randrange(4)
        main = path / MAIN
        about = json.loads(main.read_text())
        if kind == 0:
            return super().change(stream, path)
        file = path / about["tensors"]["file"]
        if kind == 1:
            file.write_bytes(mutate_bytes(stream, file.read_bytes()))
        elif kind == 2:
            self._change_tensors(stream, file)
        else:
            about = mutate_json(stream, about)
        return self._seal(stream, about, file, main)

    @staticmethod
    def _seal(stream, about, file, main):
        """Make all hashes right, as somebody would who wants the file to be opened."""
        if isinstance(about, dict):
            if isinstance(about.get("tensors"), dict) and stream.random() < 0.9:
                about["tensors"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
            about.pop("seal", None)
            about["seal"] = seal(about)
        main.write_text(json.dumps(about))

    @staticmethod
    def _change_tensors(stream, file):
        from safetensors.torch import load, save

        tensors = load(file.read_bytes())
        name = stream.choice(sorted(tensors))
        try:
            changed = torch.from_numpy(mutate_array(stream, tensors[name].numpy()))
            tensors[name] = changed.contiguous()
        except TypeError:
            del tensors[name]
        file.write_bytes(save(tensors))

    def read(self, path):
        model = eg.TableModel.load(path)
        try:
            assert len(model.predict(*self._tables(path.name))) == NODES
        except MemoryError as error:  # of a limit that the folder states
            if "memory_limit" not in str(error):
                raise
        except (ValueError, FloatingPointError) as error:  # about the tables, not the folder
            if isinstance(error, UnicodeError) or "\n" in str(error):
                raise

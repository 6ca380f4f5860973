"""Requests to the scoring service."""

import json
import math

import evengraph as eg
from attack.fuzz.mutations import mutate_json
from attack.fuzz.readers.base import Reader
from attack.fuzz.readers.tables import COLUMNS, frames
from evengraph.desk.service import Refusal, Service


class Request(Reader):
    """Bodies of requests, one or a batch, to a service with columns of all kinds."""

    name = "request"

    def prepare(self, folder):
        nodes, edges = frames(frozenset(COLUMNS))
        model = eg.TableModel(eg.Logistic(hops=1), refit=False)
        model.fit(nodes, edges, progress=False).save(folder.parent / "served")
        known = nodes, edges
        self.service = Service(folder.parent / "served", known)
        id, ends = self.service.served.scorer.columns.id, self.service.served.scorer.ends
        rows = json.loads(nodes.head(3).to_json(orient="records"))
        links = json.loads(edges.head(3).to_json(orient="records"))
        for place, row in enumerate(rows):
            row[id] = f"new{place}"
        for link in links:
            link[ends[0]] = "new0"
        one = {"rows": rows, "edges": links, "reasons": 1}
        (folder / "score.json").write_text(json.dumps(one))
        (folder / "batch.json").write_text(json.dumps({"requests": [one, {"rows": rows[:1]}]}))

    def change(self, stream, path):
        if stream.random() < 0.3:
            return super().change(stream, path)
        changed = mutate_json(stream, json.loads(path.read_text()))
        path.write_text(json.dumps(changed))
        return None

    def read(self, path):
        is_batch = path.name == "batch.json"
        try:
            found = json.loads(self.service.answer(path.read_bytes(), is_batch))["results"]
        except Refusal as error:
            raise ValueError(f"{path.name}: {json.dumps(error.content)}") from error
        for answer in [one for part in found for one in part] if is_batch else found:
            assert math.isclose(sum(answer["probabilities"].values()), 1, abs_tol=1e-5)

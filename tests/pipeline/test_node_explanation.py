"""New nodes to explain attach to the known graph only if they are said to, or their edges do."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from evengraph.pipeline.explanation import explain_node, open_explained
from evengraph.pipeline.model_info import ModelInfo, NewNodes, TrainedOn
from evengraph.tables import UnknownNodeError


def opener(alone):
    """Opens tables; fails without a known graph unless new nodes name none but themselves."""

    def open_nodes(nodes, edges, *, known=None):
        if known is None and not alone:
            raise UnknownNodeError("names 'a'", node="a", num_edges=1)
        return known

    return open_nodes


def test_tables_are_attached_if_needed(tmp_path):
    info = replace(ModelInfo(), trained_on=TrainedOn(str(tmp_path), {}))
    assert open_explained(opener(alone=True), info, "n", "e", None, {}) is None
    assert open_explained(opener(alone=True), info, "n", "e", "shop", {}) == "shop"
    found = open_explained(opener(alone=False), info, "n", "e", None, {})
    assert found == (str(tmp_path), None)
    opened = NewNodes(tables=None, rows=slice(None))
    assert open_explained(None, info, opened, None, None, {}) is opened


def test_an_unknown_id_names_some_that_are_known():
    tables = SimpleNamespace(ids=np.array(["a", "b"]))
    with pytest.raises(UnknownNodeError, match="no node 'c'; ids are like a, b"):
        explain_node(None, None, NewNodes(tables=tables, rows=[]), "c", top=1, align=True)

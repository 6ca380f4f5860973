"""Six people and the ties between them, as DataFrames; three as files."""

import pandas as pd

NODES = "id,age,kind\nann,1,a\nbob,2,b\ncid,,a\n"
EDGES = "source,target\nann,bob\nbob,cid\n"


def people(**columns):
    """Six people; ann, bob and eve are of one class, the others of another."""
    table = {
        "id": ["ann", "bob", "cid", "dee", "eve", "fay"],
        "age": [20.0, 30.0, None, 50.0, 60.0, 25.0],
        "city": ["Rome", "Oslo", "Rome", "Oslo", None, "Rome"],
        "kind": ["good", "good", "bad", "bad", "good", None],
    }
    return pd.DataFrame(table | columns)


def ties(pairs=(("ann", "bob"), ("cid", "dee"), ("eve", "ann")), **columns):
    return pd.DataFrame(list(pairs), columns=["source", "target"]).assign(**columns)

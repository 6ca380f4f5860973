"""Measures of the code's structure, for any checkout, mostly from its syntax tree.

    python tests/house.py [path/to/src/evengraph]

tests/test_architecture.py holds some of them to a limit.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

# One existing example of each thing that people add: the modules that name it are those that a
# new one touches.
EXAMPLES = {
    "method": r"graphens",
    "metric": r"auroc",
    "split protocol": r"publicstep",
    "data set": r"(?<!_)photo",
    "figure": r"cost_figure",
}
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}


def modules(source):
    """Every module by its path below the package."""
    return {path.relative_to(source).as_posix(): path for path in sorted(source.rglob("*.py"))}


@cache
def tree(path):
    """The syntax tree without docstrings."""
    parsed = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(parsed):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [
                item
                for item in body
                if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
            ]
    return parsed


def rooms(source):
    """Files and lines per room."""
    files, lines = Counter(), Counter()
    for name, path in modules(source).items():
        room = name.split("/")[0] if "/" in name else "."
        files[room] += 1
        lines[room] += len(path.read_text(encoding="utf-8").splitlines())
    return {room: (files[room], lines[room]) for room in sorted(files)}


def method_table(source):
    """METHODS as it is written: name to class name."""
    for node in ast.walk(tree(source / "methods" / "__init__.py")):
        if isinstance(node, ast.Dict) and any(
            isinstance(key, ast.Constant) and key.value == "gcn" for key in node.keys
        ):
            return {key.value: value.id for key, value in zip(node.keys, node.values, strict=True)}
    raise ValueError("no METHODS table found")


@cache
def chains(source):
    """The classes between Method and each final method, by the method's name."""
    bases = {}
    for path in modules(source).values():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]

    def between(name):
        if name == "Method":
            return []
        paths = [
            [base, *rest] for base in bases.get(name, []) if (rest := between(base)) is not None
        ]
        return max(paths, key=len, default=None)

    return {key: between(name)[:-1] for key, name in method_table(source).items()}


@cache
def words(path):
    """Every identifier and every whole string of a module, docstrings left out."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found |= {node.name.split(".")[-1], node.asname or node.name}
        elif isinstance(node, ast.keyword):
            found.add(node.arg or "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def titles(source):
    """Title of each method as its class declares it."""
    found = {}
    for name in method_table(source):
        path = source / "methods" / f"{name}.py"
        match = path.exists() and re.search(r'^    title.*= "(.+)"$', path.read_text(), flags=re.M)
        found[name] = match[1] if match else method_table(source)[name]
    return found


def namers(source):
    """Modules outside `methods` that name a method by key, class or title, with what they name."""
    table, title = method_table(source), titles(source)
    names = {word for key in table for word in (key, table[key], title[key])}
    return {
        name: sorted(named)
        for name, path in modules(source).items()
        if not name.startswith("methods/") and (named := names & words(path))
    }


def to_touch(source, pattern):
    """Modules and TOML files that name an example of something: a new one is added to them."""
    expression = re.compile(rf"(?i)\b(?:{pattern})\b")
    tables = [
        path.relative_to(source).as_posix()
        for path in sorted(source.rglob("*.toml"))
        if expression.search(path.read_text(encoding="utf-8"))
    ]
    return tables + [
        name
        for name, path in modules(source).items()
        if any(len(word) < 80 and expression.search(word) for word in words(path))
    ]


def private_uses(source):
    """Private names of one module of ours that another uses: `module: name`."""
    defined = {name: _defined(path) for name, path in modules(source).items()}
    ours = set().union(*defined.values())
    found = set()
    for name, path in modules(source).items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom):
                used = {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and not _is_self(node.value):
                used = {node.attr}
            else:
                continue
            foreign = (used & ours) - defined[name]
            found |= {
                f"{name}: {word}" for word in foreign - NAMED_TUPLE if word[0] == "_" != word[1]
            }
    return sorted(found)


def _defined(path):
    """Functions, classes, variables and attributes that a module defines."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def _is_self(node):
    """Whether a name is looked up on the object itself, its class or its parents."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def largest_signature(source):
    """The method with the most parameters besides the four of training, and how many."""
    fields, bases = {}, {}
    for path in modules(source).values():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                fields[node.name] = {
                    item.target.id
                    for item in node.body
                    if isinstance(item, ast.AnnAssign)
                    and isinstance(item.target, ast.Name)
                    and not item.target.id.endswith("_")
                    and "ClassVar" not in ast.unparse(item.annotation)
                }

    def parameters(name):
        return fields.get(name, set()).union(*(parameters(base) for base in bases.get(name, [])))

    training = fields["Method"]
    counts = {name: len(parameters(name) - training) for name in method_table(source).values()}
    return max(counts.items(), key=lambda item: item[1])


HOPS = """
import traceback
from evengraph.cli import main
from evengraph.methods import Method

def fit(*_, **__):
    frames = [f for f in traceback.extract_stack() if "evengraph" in f.filename]
    start = max(i for i, f in enumerate(frames) if "/cli/" in f.filename and f.name == "run")
    print(*(f"{f.filename.rpartition('evengraph/')[2]}:{f.name}" for f in frames[start:]))
    raise SystemExit

Method.fit = fit
main("run toy --split natural --method gcn --splits 1-1 --out FOLDER".split())
"""


def hops(source):
    """Calls from the function of `evengraph run` to `Method.fit`, by running it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", HOPS.replace("FOLDER", folder)],
            env=os.environ | {"PYTHONPATH": str(source.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout.splitlines()[-1].split() if done.stdout else [done.stderr[-200:]]


def main(source):
    """Print every measure."""
    table = rooms(source)
    print(f"{'room':14} files  lines")
    for room, (files, lines) in table.items():
        print(f"{room:14} {files:5} {lines:6,}")
    print(
        f"{'all':14} {sum(f for f, _ in table.values()):5} {sum(n for _, n in table.values()):6,}"
    )
    name, chain = max(chains(source).items(), key=lambda item: len(item[1]))
    print(f"\nclasses between Method and a final method: {len(chain)} at most ({name}: {chain})")
    cls, count = largest_signature(source)
    print(f"constructor parameters of a method, besides those of Method: {count} at most ({cls})")
    outside = namers(source)
    print(f"modules outside methods that name a method: {len(outside)}")
    for module, named in outside.items():
        print(f"  {module}: {', '.join(named)}")
    print("modules that name an example, so that a new one touches:")
    for thing, pattern in EXAMPLES.items():
        touched = to_touch(source, pattern)
        print(f"  {thing} ({pattern}): {len(touched)}: {', '.join(touched)}")
    calls = hops(source)
    print(f"calls from the command to Method.fit: {len(calls)}: {', '.join(calls)}")
    private = private_uses(source)
    print(f"private names used across modules: {len(private)}")
    for use in private:
        print(f"  {use}")


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "src" / "evengraph"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)

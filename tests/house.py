"""Measures of the code's structure, for any checkout, from its syntax tree.

    python tests/house.py [path/to/src/evengraph]

prints the size of each room and the calls from the command to `Method.fit`;
tests/test_architecture.py holds the other measures to the laws.
"""

import ast
import io
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

NOT_OURS = {"_asdict", "_fields", "_make", "_replace", "_version"}  # of named tuples, tensors
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


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
    """Files, lines and lines of code (no blank line, comment or docstring) of each room."""
    sizes = Counter()
    for name, path in modules(source).items():
        room = name.split("/")[0] if "/" in name else "."
        lines, code = _lines(path)
        for kind, size in (("files", 1), ("lines", lines), ("code", code)):
            sizes[room, kind] += size
            sizes["all", kind] += size
    return {room: [sizes[room, k] for k in ("files", "lines", "code")] for room, _ in sizes}


def _lines(path):
    """How many lines a module has, and how many of them are code."""
    text = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {n for t in tokens if t.type not in NO_CODE for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            code -= set(range(node.lineno, node.end_lineno + 1))
    lines = text.splitlines()
    return len(lines), sum(bool(lines[n - 1].strip()) for n in code)


def method_table(source):
    """The methods as their table is written: name to class name."""
    text = (source / "methods" / "__init__.py").read_text(encoding="utf-8")
    line = re.compile(r"^from evengraph\.methods\.(\w+) import ([A-Z]\w+) as \2$", re.M)
    found = line.findall(text)
    assert ("gcn", "GCN") in found, "no table of methods found"
    return dict(found)


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
    for name, cls in method_table(source).items():
        text = (source / "methods" / f"{name}.py").read_text(encoding="utf-8")
        match = re.search(r'^    title.*= "(.+)"$', text, flags=re.M)
        found[name] = match[1] if match else cls
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


def to_touch(source, word):
    """Modules and TOML files that name an example of something: a new one is added to them."""
    expression = re.compile(rf"(?i)\b{word}\b")
    tables = [
        path.relative_to(source).as_posix()
        for path in sorted(source.rglob("*.toml"))
        if expression.search(path.read_text(encoding="utf-8"))
    ]
    return tables + [
        name
        for name, path in modules(source).items()
        if any(len(found) < 80 and expression.search(found) for found in words(path))
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
            found |= {f"{name}: {word}" for word in foreign - NOT_OURS if word[0] == "_" != word[1]}
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
    """The functions from that of `evengraph run` to the caller of `Method.fit`, by running it."""
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
    """Print the sizes and the path of a run."""
    print(f"{'room':12} files   lines    code")
    for room, (files, lines, code) in sorted(rooms(source).items()):
        print(f"{room:12} {files:5} {lines:7,} {code:7,}")
    calls = hops(source)
    print(f"\n{len(calls)} calls from the command to Method.fit:", *calls, sep="\n  ")


if __name__ == "__main__":
    default = Path(__file__).resolve().parents[1] / "src" / "evengraph"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)

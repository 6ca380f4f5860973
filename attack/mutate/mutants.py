"""Mutants of a module: its source with one operator, number, condition or statement changed."""

import ast
from dataclasses import dataclass

COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """A module with one change, which is made when its tree is asked for."""

    path: str
    line: int
    column: int
    change: str
    source: str
    index: int
    number: int

    @property
    def name(self):
        return f"{self.path}:{self.line}:{self.column} {self.change}"

    @property
    def text(self):
        return self.source.splitlines()[self.line - 1].strip()

    @property
    def tree(self):
        changed = ast.parse(self.source)
        target = _nodes(changed)[self.index]
        list(_changes(target))[self.number][1](target)
        return ast.fix_missing_locations(changed)


def mutants(path, source):
    """All mutants of a module. Annotations, docstrings and messages of errors are left alone."""
    for index, node in enumerate(_nodes(ast.parse(source))):
        for number, (change, _) in enumerate(_changes(node)):
            yield Mutant(path, node.lineno, node.col_offset, change, source, index, number)


def _nodes(tree):
    """The nodes that can be changed, in a fixed order."""
    found = []

    def visit(node):
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Raise):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _is_text(child):
                    continue
                if isinstance(child, ast.If) and _is_for_types(child):
                    continue
                if hasattr(child, "lineno"):
                    found.append(child)
                visit(child)

    visit(tree)
    return found


def _is_text(node):
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom)


def _is_for_types(node):
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _changes(node):
    """What can be done to a node: words for it, and a function that does it in place."""
    if isinstance(node, ast.Compare):
        yield from _swap(node, COMPARE, type(node.ops[0]), lambda n, new: n.ops.__setitem__(0, new))
    elif isinstance(node, ast.BinOp):
        yield from _swap(node, ARITHMETIC, type(node.op), lambda n, new: setattr(n, "op", new))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        name = other.__name__.lower()
        yield f"the other of and/or: {name}", lambda n: setattr(n, "op", other())
    elif isinstance(node, ast.If | ast.IfExp):
        yield "condition negated", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign dropped", lambda n: setattr(n, "op", ast.UAdd())
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        new = not node.value if isinstance(node.value, bool) else node.value + 1
        yield f"{node.value} becomes {new}", lambda n: setattr(n, "value", new)
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        new = ARITHMETIC[type(node.op)]
        yield f"{_word(node.op)}= becomes {_word(new)}=", lambda n: setattr(n, "op", new())
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        text = ast.unparse(node)[:40]
        yield f"dropped: {text}", lambda n: setattr(n, "value", ast.Constant(None))


def _swap(node, table, kind, put):
    if kind in table:
        new = table[kind]
        change = f"{_word(kind)} becomes {_word(new)} in {ast.unparse(node)[:50]}"
        yield change, lambda n: put(n, new())


def _word(kind):
    return (kind if isinstance(kind, type) else type(kind)).__name__

"""What a Python file says to people: docstrings, the texts of errors, and the help of commands."""

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from tests.project.prose.blocks import Block, docstring_blocks, plain

_SAYS = re.compile(
    r"\braise |(?:Error|Refusal)\(|\b(?:help|hint|detail|message|meaning|summary|epilog)=|\"KH\d"
    r"|^_*[A-Z0-9_]*(?:HINT|DETAIL|MESSAGE|HELP)S? ="
)
"""A statement without a line of these is not searched for messages, which saves a second."""
_KEYWORDS = frozenset({"help", "hint", "detail", "message", "meaning", "summary", "epilog"})
_CONSTANT = re.compile(r"_*(?:[A-Z0-9]+_)*(?:HINT|DETAIL|MESSAGE|HELP)S?")
_CODE = re.compile(r"KH\d{3}")


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the text of an expression, with `{values}` as one word; both texts of a conditional one."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "`value`" for part in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield "".join(text for side in (left, right) for text in _texts(side))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body)
            yield from _texts(orelse)


def _name(call: ast.expr) -> str:
    return call.id if isinstance(call, ast.Name) else call.attr if isinstance(call, ast.Attribute) else ""


def _spoken(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions under one node that people will read."""
    match node:
        case ast.Raise(exc=ast.Call(args=args)):
            yield from args
        case ast.Call(func=func, args=args, keywords=keywords):
            if _name(func).endswith(("Error", "Refusal")):
                yield from args
            yield from (one.value for one in keywords if one.arg in _KEYWORDS)
        case ast.Tuple(elts=[ast.Constant(value=str(code)), *others]) if _CODE.fullmatch(code):
            yield from others
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _CONSTANT.fullmatch(name):
            yield value


def _docstrings(body: list[ast.stmt]) -> Iterator[ast.Constant]:
    """Yield docstrings of modules, classes, functions and attributes: every statement that is a text alone."""
    for node in body:
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield node.value
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(node.body)


def _speaking(body: list[ast.stmt], lines: list[int]) -> Iterator[ast.stmt]:
    """Yield the statements in which one of the lines is: classes are opened, functions are whole."""
    for node in body:
        last = node.end_lineno or node.lineno
        if bisect_left(lines, node.lineno) < bisect_right(lines, last):
            if isinstance(node, ast.ClassDef):
                yield from _speaking(node.body, lines)
            else:
                yield node


def source_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a Python file, docstrings first."""
    tree = ast.parse(text)
    for docstring in _docstrings(tree.body):
        yield from docstring_blocks(str(docstring.value), line=docstring.lineno)
    yield from _messages(text, tree)


def message_blocks(text: str) -> Iterator[Block]:
    """Yield what a Python file says to users: texts of errors, details, hints and help, without docstrings."""
    if _SAYS.search(text):
        yield from _messages(text, ast.parse(text))


def _messages(text: str, tree: ast.Module) -> Iterator[Block]:
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if _SAYS.search(line)]
    nodes = (node for statement in _speaking(tree.body, lines) for node in ast.walk(statement))
    spoken = {id(said): said for node in nodes for said in _spoken(node)}
    for said in spoken.values():
        yield from (Block(said.lineno, plain(one)) for one in _texts(said))

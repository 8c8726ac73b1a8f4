"""No exception object is kept and raised again: its traceback would keep the frames, and the requests, of all its
raises.

The rules are checked on the syntax tree of every module:

- `raise` takes a new exception (a call or a class), or the name that the enclosing `except … as name` binds. A local
  variable may be raised inside `try: … finally: del name`, which breaks the reference cycle of frame, exception and
  traceback.
- No attribute, class field or module variable is declared to hold an exception, and none is assigned the name of an
  `except` clause.
- `set_exception` takes a new exception, since several waiters may raise it.
- `asyncio.shield` is not used: it raises one exception in all waiters of a task.

Use `tetrapod.machinery.failure` instead: `Failure` keeps the content of an exception as a value, `result_of` awaits a
shared task.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SERVICES = Path(__file__).parents[2] / "services"
BUILTIN = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}
ALLOWED = {
    "failures.append(error)": "the coroutine that takes it out again is the one that put it in, in its next step",
    "self._ctx.exception = error": "ANTLR's protocol; the context is dropped with the parser",
}
LIBRARIES = {"CancelledError", "SSLError", "SSLWantReadError", "HTTPError", "PyJWTError", "YAMLError"}


def exception_classes(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of all exception classes: built-in ones, and those that are declared with one of them as a
    base.
    """
    known = BUILTIN | LIBRARIES
    bases = {
        node.name: {_last_name(base) for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    while more := {name for name, of in bases.items() if of & known} - known:
        known |= more
    return known


def violations(tree: ast.Module, exceptions: set[str]) -> Iterator[tuple[int, str]]:
    """Return the lines of a module that keep an exception or raise one that was kept."""
    yield from _visit(tree, (), exceptions)


def _visit(node: ast.AST, raisable: tuple[str, ...], exceptions: set[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Raise) and node.exc is not None and not _is_new(node.exc, raisable, exceptions):
        yield node.lineno, ast.unparse(node)
    yield from _kept(node, raisable, exceptions)
    for child in ast.iter_child_nodes(node):
        inner = raisable
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inner = ()
        elif isinstance(child, ast.ExceptHandler) and child.name:
            inner = (*raisable, child.name)
        elif isinstance(node, ast.Try) and child in node.body:
            inner = (*raisable, *_deleted(node.finalbody))
        yield from _visit(child, inner, exceptions)


def _kept(node: ast.AST, caught: tuple[str, ...], exceptions: set[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.AnnAssign) and _outlives_its_function(node) and _mentions(node.annotation, exceptions):
        yield node.lineno, ast.unparse(node)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in caught:
        yield node.lineno, ast.unparse(node)
    if isinstance(node, ast.Call) and _last_name(node.func) == "shield":
        yield node.lineno, ast.unparse(node)
    if isinstance(node, ast.Call) and _last_name(node.func) in ("set_exception", "append") and node.args:
        (argument, *_) = node.args
        if isinstance(argument, ast.Name) and argument.id in caught:
            yield node.lineno, ast.unparse(node)


def _is_new(value: ast.expr, raisable: tuple[str, ...], exceptions: set[str]) -> bool:
    match value:
        case ast.Await(value=inner):
            return _is_new(inner, raisable, exceptions)
        case ast.IfExp(body=first, orelse=second):
            return _is_new(first, raisable, exceptions) and _is_new(second, raisable, exceptions)
        case ast.Call():
            return True
        case ast.Name(id=name):
            return name in raisable or name in exceptions
        case ast.Attribute(attr=name):
            return name in exceptions
    return False


def _outlives_its_function(node: ast.AnnAssign) -> bool:
    """Tell an attribute, a class field or a module variable from a local variable, by the mark that `marked` has put on
    it.
    """
    return isinstance(node.target, ast.Attribute) or not getattr(node, "local", False)


def _mentions(annotation: ast.expr, exceptions: set[str]) -> bool:
    """Tell whether an annotation allows an instance of an exception: `type[X]`, `Callable[…, X]` and `Failure[X]` hold
    none.
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return _mentions(ast.parse(annotation.value, mode="eval").body, exceptions)
    if isinstance(annotation, ast.Subscript) and _last_name(annotation.value) in (
        "type",
        "Callable",
        "Failure",
        "ClassVar",
    ):
        return False
    if _last_name(annotation) in exceptions:
        return True
    return any(
        _mentions(child, exceptions) for child in ast.iter_child_nodes(annotation) if isinstance(child, ast.expr)
    )


def _deleted(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, ast.Delete):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
    return ""


def parsed(text: str) -> ast.Module:
    """Parse a module and mark the annotated variables that are local to a function."""
    tree = ast.parse(text)
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.AnnAssign):
                    node.local = True  # type: ignore[attr-defined]
    return tree


def test_no_exception_object_is_kept_and_raised_again() -> None:
    modules = {
        path: parsed(path.read_text()) for path in sorted(SERVICES.rglob("*.py")) if not path.stem.endswith("_pb2")
    }
    exceptions = exception_classes(modules.values())
    found = [
        f"{path.relative_to(SERVICES)}:{line}: {text}"
        for path, tree in modules.items()
        for line, text in violations(tree, exceptions)
        if text not in ALLOWED
    ]
    assert not found, "\n".join(found)


KEPT = {
    "an attribute": "def f(self):\n    raise self._error",
    "a cached value": (
        "def f(self, key):\n    cached = self._cache[key]\n    if isinstance(cached, ValueError):\n        raise cached"
    ),
    "a constant": "GONE = ValueError('gone')\ndef f():\n    raise GONE",
    "a parameter": "def f(error):\n    raise error",
    "a variable": "def f():\n    error = make()\n    raise error",
    "one of two": "def f(self):\n    raise self._error or ValueError('no answer')",
    "an element": "def f(errors):\n    raise errors[0]",
    "a declared attribute": "class A:\n    def __init__(self):\n        self._error: ValueError | None = None",
    "a declared cache": (
        "class A:\n    def __init__(self):\n        self._verdicts: dict[str, int | Mine] = {}\n"
        "class Mine(KeyError): ..."
    ),
    "a declared field": "class A:\n    error: Exception | None",
    "a caught one in an attribute": "def f(self):\n    try: g()\n    except ValueError as e:\n        self.x = e",
    "a caught one in a list": "def f(self):\n    try: g()\n    except ValueError as e:\n        self.x.append(e)",
    "a caught one for waiters": (
        "def f(self):\n    try: g()\n    except ValueError as e:\n        self.x.set_exception(e)"
    ),
    "a shared task's": "async def f(self):\n    await asyncio.shield(self.task)",
}
NEW = {
    "a new one": "def f():\n    raise ValueError('x')",
    "one that is made": "async def f():\n    raise await made()",
    "a class": "def f():\n    raise ValueError",
    "again what is being handled": (
        "def f():\n    try: g()\n    except ValueError as error:\n        raise error from None"
    ),
    "one or the other": (
        "def f():\n    try: g()\n    except ValueError as error:\n        raise KeyError() if x else error"
    ),
    "a variable that is deleted": "def f():\n    error = make()\n    try: raise error\n    finally: del error",
    "a failure": (
        "class A:\n    def f(self):\n        self.x: Failure[ValueError] | None = None\n        raise self.x.error()"
    ),
    "a local variable": "def f():\n    error: ValueError | None = None",
    "a class in an attribute": "class A:\n    kind: type[ValueError]",
}


@pytest.mark.parametrize("case", KEPT)
def test_a_kept_exception_is_found(case: str) -> None:
    tree = parsed(KEPT[case])
    assert list(violations(tree, exception_classes([tree])))


@pytest.mark.parametrize("case", NEW)
def test_a_new_exception_is_accepted(case: str) -> None:
    tree = parsed(NEW[case])
    assert not list(violations(tree, exception_classes([tree])))

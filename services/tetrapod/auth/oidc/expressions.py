"""CEL expressions over the variables `claims` and `user`.

They are compiled once and evaluated for every token that is not cached. All numbers are doubles, because Go decodes
JSON that way.

Upstream: k8s.io/apiserver/pkg/authentication/cel/{compile,mapper,interface}.go, and newClaimsValue with its unescaping
in plugin/pkg/authenticator/token/oidc/oidc.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tetrapod.machinery.cel import declarations, types
from tetrapod.machinery.cel.declarations import DeclType, list_decl, map_decl, object_decl
from tetrapod.machinery.cel.environment import Environment, Program
from tetrapod.machinery.cel.errors import CelError, CompileError, EvaluationError
from tetrapod.machinery.cel.escaping import unescape
from tetrapod.machinery.cel.values import Fields, ObjectLike, WrappedMap, no_such_overload
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import UserInfo

CLAIMS: Final = "claims"
USER: Final = "user"
_NO_BOOL: Final = "must evaluate to bool"


class ExpressionError(Exception):
    """The error for an expression that does not compile, has the wrong type or fails; the text is upstream's."""


class InstantiationFailed(ExpressionError):
    """The error for an expression of which a constant part fails, which upstream reports as an internal error."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled CEL expression over the variable `claims` or `user`.

    Attributes:
        about: the message of a validation rule, or the key of an extra mapping; "" for other expressions.
    """

    text: str
    program: Program
    about: str = ""

    def evaluate(self, variable: str, value: Any) -> Any:
        """Evaluate the expression with one variable, and return the CEL value.

        Args:
            variable: "claims" or "user".
            value: the result of `claims_value` or `user_value`.

        Raises:
            ExpressionError: the evaluation fails.
            TakesTooLong: the evaluation would take too long for the event loop.
        """
        try:
            return self.program.evaluate({variable: value})
        except CelError as error:
            raise ExpressionError(f"expression '{self.text}' resulted in error: {error}") from None


def compile_claims(text: str, about: str = "", *, rule: bool = False) -> Expression:
    """Compile an expression over `claims`.

    Args:
        text: the expression.
        about: the message of a validation rule, or the key of an extra mapping; "" for other expressions.
        rule: whether it must return a bool.

    Raises:
        ExpressionError: the expression does not compile or has the wrong type.
    """
    return _compile(_claims_environment(), text, about, rule)


def compile_user(text: str, about: str = "") -> Expression:
    """Compile a validation rule over `user`, which must return a bool.

    Args:
        text: the expression.
        about: the message of the rule.

    Raises:
        ExpressionError: the expression does not compile or has the wrong type.
    """
    return _compile(_user_environment(), text, about, True)


def _compile(environment: Environment, text: str, about: str, rule: bool) -> Expression:
    try:
        program = environment.compile(text)
    except CompileError as error:
        if error.output_type is None:
            raise ExpressionError(error.full) from None
        if rule and error.output_type != types.BOOL:
            raise ExpressionError(_NO_BOOL) from None
        raise InstantiationFailed(error.full) from None
    if rule and program.output_type != types.BOOL:
        raise ExpressionError(_NO_BOOL)
    return Expression(text, program, about)


@cache
def _claims_environment() -> Environment:
    return Environment({CLAIMS: map_decl(declarations.STRING, DeclType("any", types.ANY, 0))})


@cache
def _user_environment() -> Environment:
    strings = list_decl(declarations.STRING)
    fields = {
        "username": declarations.STRING,
        "uid": declarations.STRING,
        "groups": strings,
        "extra": map_decl(declarations.STRING, strings),
    }
    return Environment({USER: object_decl("kubernetes.UserInfo", fields)})


class _Members(ObjectLike):
    """The base class of values whose members are converted to CEL values when they are looked up.

    Args:
        members: the members by their unescaped names.
    """

    __slots__ = ("_converted", "_members")

    def __init__(self, members: Object) -> None:
        self._members = members
        self._converted: dict[str, Any] = {}

    def _member(self, name: Any) -> Any:
        if name not in self._converted:
            self._converted[name] = _value(self._members[name])
        return self._converted[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


class _Unescaping(_Members, WrappedMap):
    """A CEL map whose keys can also be written as escaped identifiers: `claims.kubernetes__dot__io`."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        name = unescape(key) if isinstance(key, str) else None
        return self._member(key if name is None else name)


class _Fields(_Members, Fields):
    """The value of a variable: its fields have the names of claims, which are written as escaped identifiers.

    Args:
        type_name: the name of its object type.
        members: the fields by their unescaped names.
    """

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, members: Object) -> None:
        super().__init__(members)
        self.type_name = type_name

    def find(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise no_such_overload()
        name = unescape(key)
        if name is None:
            raise KeyError(key)
        return self._member(name)

    def elements(self) -> Iterator[Any]:
        for name in self._members:
            try:
                yield self.find(name)
            except KeyError:
                raise EvaluationError(f"no such key: {name}") from None


def _value(value: Any) -> Any:
    match value:
        case dict():
            return _Unescaping(value)
        case list():
            return [_value(item) for item in value]
        case int() if not isinstance(value, bool):
            return float(value)
    return value


def claims_value(claims: Object) -> Any:
    """Return the CEL value of the variable `claims` for the claims of a token."""
    return _Fields("kubernetes.claims", claims)


def user_value(user: UserInfo) -> Any:
    """Return the CEL value of the variable `user`."""
    extra = {key: list(texts) for key, texts in user.extra.items()}
    members = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return _Fields("kubernetes.UserInfo", members)


Evaluate = Callable[[Expression], Any]


def check_rules(rules: tuple[Expression, ...], evaluate: Evaluate) -> None:
    """Check that all validation rules are true.

    As upstream (checkValidationRulesEvaluation), all are evaluated before the first failure is reported.

    Args:
        rules: the rules, all of which are evaluated.
        evaluate: evaluates a rule.

    Raises:
        ExpressionError: a rule fails, is false, or does not return a bool.
    """
    for rule, passed in [(rule, evaluate(rule)) for rule in rules]:
        if not isinstance(passed, bool):
            raise ExpressionError("validation expression must return a boolean")
        if not passed:
            raise ExpressionError(f"validation expression '{rule.text}' failed: {rule.about}")


def string_list(value: Any) -> tuple[str, ...]:
    """Convert the result of a CEL expression, which is a string, a list of strings or null, to a tuple of strings.

    Empty strings and null are left out.

    Raises:
        ExpressionError: the value has another type.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if value else ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ExpressionError("expression must return a string or a list of strings")
    return tuple(item for item in value if item)

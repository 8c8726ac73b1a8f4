"""Validation of custom resources against the anyOf, oneOf, allOf and not of their schema.

If a value fails all alternatives of anyOf or oneOf, the errors of the one that passed the most checks are reported.

Upstream: k8s.io/kube-openapi/pkg/validation/validate/schema_props.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.schema.path_pairs import Path, text_of
from tetrapod.machinery.schema.structural import build
from tetrapod.machinery.schema.value_checks import composite
from tetrapod.machinery.schema_node import SchemaNode


class Combinations:
    """The anyOf, oneOf, allOf and not of one schema. They are compiled when the first value is validated.

    Args:
        rules: the keywords of the schema (`SchemaNode.validations`).
        validator: returns the validator of a schema, a function like `schema.validation.Validator`.
    """

    def __init__(self, rules: Mapping[str, Any], validator: Callable[[SchemaNode], Callable[..., int]]) -> None:
        self._validator = validator
        self._any, self._one, self._all = (
            [build(s) for s in rules.get(key) or ()] for key in ("anyOf", "oneOf", "allOf")
        )
        self._not = build(rules["not"]) if rules.get("not") is not None else None

    def check(self, value: Any, path: Path, errors: list[FieldError]) -> int:
        """Validate a value and append the errors to `errors`.

        Args:
            value: the value.
            path: the path of the value.
            errors: the list that receives the errors.

        Returns:
            The number of checks that passed, as upstream counts them.
        """
        passed = 1
        if self._any:
            passed += self._check_any(value, path, errors)
        if self._one:
            passed += self._check_one(value, path, errors)
        if self._all:
            passed += self._check_all(value, path, errors)
        if self._not is not None and not self._try(self._not, value, path)[1]:
            errors.append(composite(f"{go_quote(text_of(path))} must not validate the schema (not)"))
        return passed

    def _try(self, node: SchemaNode, value: Any, path: Path) -> tuple[int, list[FieldError]]:
        """Validate a value against one alternative.

        Errors of unchanged values are not tolerated (ratcheting), because upstream does not pass its options to
        alternatives.

        Args:
            node: the schema of the alternative.
            value: the value.
            path: the path of the value.

        Returns:
            The number of checks that passed, and the errors; [] if the value is valid.
        """
        alternative_errors: list[FieldError] = []
        return self._validator(node)(value, path, alternative_errors, None), alternative_errors

    def _check_any(self, value: Any, path: Path, errors: list[FieldError]) -> int:
        best: tuple[int, list[FieldError]] | None = None
        for node in self._any:
            passed, alternative_errors = self._try(node, value, path)
            if not alternative_errors:
                return passed
            if best is None or passed > best[0]:
                best = passed, alternative_errors
        assert best is not None
        errors.append(composite(f"{go_quote(text_of(path))} must validate at least one schema (anyOf)"))
        errors += best[1]
        return best[0]

    def _check_one(self, value: Any, path: Path, errors: list[FieldError]) -> int:
        best: tuple[int, list[FieldError]] | None = None
        valid_passed = valid = 0
        for node in self._one:
            passed, alternative_errors = self._try(node, value, path)
            if not alternative_errors:
                valid += 1
                valid_passed = valid_passed or passed
                best = None
            elif not valid and (best is None or passed > best[0]):
                best = passed, alternative_errors
        if valid == 1:
            return valid_passed
        summary = f"Found {valid} valid alternatives" if valid else "Found none valid"
        errors.append(composite(f"{go_quote(text_of(path))} must validate one and only one schema (oneOf). {summary}"))
        if best is None:
            return 0
        errors += best[1]
        return best[0]

    def _check_all(self, value: Any, path: Path, errors: list[FieldError]) -> int:
        total = valid = 0
        for node in self._all:
            passed, branch_errors = self._try(node, value, path)
            valid += not branch_errors
            errors += branch_errors
            total += passed
        if valid != len(self._all):
            suffix = "" if valid else ". None validated"
            errors.append(composite(f"{go_quote(text_of(path))} must validate all the schemas (allOf){suffix}"))
        return total

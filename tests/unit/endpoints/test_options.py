"""Tests of options in queries and bodies: what is rejected, with which text, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.generic.endpoints.options import (
    WriteOptions,
    decode_list_options,
    decode_write_options,
    delete_options_from_body,
    delete_options_from_query,
    validate_delete_options,
    validate_list_options,
)
from tetrapod.machinery.golang.query import Query
from tetrapod.machinery.status import StatusError


def rejection(call: Any, *args: Any, **kwargs: Any) -> StatusError:
    with pytest.raises(StatusError) as rejected:
        call(*args, **kwargs)
    return rejected.value


def test_the_first_of_repeated_parameters_counts() -> None:
    assert Query("a=1&a=2&b").values == {"a": "1", "b": ""}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("abc", "invalid syntax"),
        ("", "invalid syntax"),
        ("1.5", "invalid syntax"),
        (" 5", "invalid syntax"),
        ("9223372036854775808", "value out of range"),
    ],
)
def test_numbers_are_parsed_like_gos(value: str, problem: str) -> None:
    error = rejection(decode_list_options, {"limit": value})
    assert (error.code, error.message) == (400, f'strconv.ParseInt: parsing "{value}": {problem}')


@pytest.mark.parametrize(
    ("value", "watch"), [("", True), ("maybe", True), ("1", True), ("0", False), ("false", False), ("FALSE", False)]
)
def test_watch_is_on_for_every_value_but_false_and_0(value: str, watch: bool) -> None:
    assert decode_list_options({"watch": value}).watch is watch


def test_a_watch_without_a_version_begins_with_the_current_state() -> None:
    for version in ({}, {"resourceVersion": "0"}):
        options = decode_list_options({"watch": "1"} | version)
        assert (options.send_initial_events, options.resource_version_match) == (True, "NotOlderThan")
    for query in ({"resourceVersion": "1"}, {"resourceVersionMatch": "Exact"}, {"sendInitialEvents": "false"}):
        options = decode_list_options({"watch": "1"} | query)
        assert (options.send_initial_events, options.resource_version_match) != (True, "NotOlderThan")
    assert decode_list_options({"limit": "1"}).send_initial_events is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            {"watch": "1", "continue": "x"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        (
            {"resourceVersionMatch": "Exact"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            {"resourceVersionMatch": "exact", "resourceVersion": "1"},
            'resourceVersionMatch: Unsupported value: "exact": supported values: "Exact", "NotOlderThan", ""',
        ),
        ({"sendInitialEvents": "true"}, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        (
            {"watch": "1", "sendInitialEvents": "true"},
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
    ],
)
def test_conflicting_list_options_are_invalid(query: dict[str, str], message: str) -> None:
    error = rejection(validate_list_options, decode_list_options(query))
    assert (error.code, error.message) == (422, f'ListOptions.meta.k8s.io "" is invalid: {message}')


def test_write_options_are_reported_in_upstreams_order() -> None:
    query = "dryRun=bad&fieldManager=a%00b&fieldValidation=bad&force=true"
    error = rejection(decode_write_options, Query(query), "PatchOptions", apply=False)
    assert error.details is not None
    assert [cause["field"] for cause in error.details["causes"]] == [
        "force",
        "fieldManager",
        "dryRun",
        "fieldValidation",
    ]


def test_an_apply_needs_a_manager_and_may_be_forced() -> None:
    error = rejection(decode_write_options, Query(""), "PatchOptions", apply=True)
    assert "fieldManager: Required value: is required for apply patch" in error.message
    options = decode_write_options(Query("fieldManager=m&force="), "PatchOptions", apply=True)
    assert options == WriteOptions(field_manager="m", force=True)


def test_a_long_field_manager_is_not_repeated() -> None:
    error = rejection(decode_write_options, Query(f"fieldManager={'a' * 129}"), "UpdateOptions")
    assert (
        error.message
        == 'UpdateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes'
    )


def test_delete_options_of_a_query_have_names_of_their_own() -> None:
    options = delete_options_from_query(
        Query("uid=u&resourceVersion=1&orphanDependents=perhaps&gracePeriodSeconds=-1&dryRun=All")
    )
    assert options == {
        "preconditions": {"uid": "u", "resourceVersion": "1"},
        "orphanDependents": True,
        "gracePeriodSeconds": -1,
        "dryRun": ["All"],
    }


def test_delete_options_of_any_version_are_taken_and_nothing_else() -> None:
    body = {"kind": "DeleteOptions", "apiVersion": "v9", "dryRun": ["All"], "nope": 1}
    assert delete_options_from_body(body, b"") == {"dryRun": ["All"]}
    other = rejection(delete_options_from_body, {"kind": "ConfigMap", "apiVersion": "v1"}, b"")
    assert 'no kind "ConfigMap" is registered for version "v1"' in other.message
    assert rejection(delete_options_from_body, {"gracePeriodSeconds": "abc"}, b"").code == 400


def test_delete_options_are_validated() -> None:
    error = rejection(validate_delete_options, {"orphanDependents": True, "propagationPolicy": "bad", "dryRun": ["x"]})
    assert error.details is not None
    assert [cause["reason"] for cause in error.details["causes"]] == [
        "FieldValueInvalid",
        "FieldValueNotSupported",
        "FieldValueNotSupported",
    ]
    unsafe = {"ignoreStoreReadErrorWithClusterBreakingPotential": True}
    validate_delete_options(unsafe)
    assert "is not allowed with DELETECOLLECTION" in rejection(validate_delete_options, unsafe, collection=True).message

"""Tests of YAML bodies: read as by go-yaml v2, and hostile ones are rejected."""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import Any

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.machinery.serializer import yaml, yaml_events, yaml_flow, yaml_key_order, yaml_output
from tetrapod.machinery.serializer.errors import DecodeError
from tetrapod.machinery.serializer.yaml_key_order import sorted_keys

TEXT = st.text(
    alphabet=st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\x85\u2028\u2029")
) | st.sampled_from(
    [
        "yes",
        "n",
        "012",
        "1e3",
        "0x1",
        "~",
        "",
        ".5",
        "2020-01-01",
        "1:30",
        "<<",
        "a: b",
        "two\nlines",
        "- x",
        "#",
        "null",
        ".inf",
        "1_0",
    ]
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("n", False),
        ("Off", False),
        ("oFF", "oFF"),
        ("~", None),
        ("010", 8),
        ("08", 8),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("1e3", 1000),
        ("2.0", 2),
        (".5", 0.5),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ('"yes"', "yes"),
        ("!!str 5", "5"),
        ("!custom 5", "5"),
        ("!!python/object:os.system x", "x"),
        ("!!binary aGk=", "hi"),
        ("99999999999999999999", 1e20),
    ],
)
def test_scalars_get_the_types_of_yaml_1_1(text: str, value: Any) -> None:
    decoded = yaml.decode(f"a: {text}".encode()).obj["a"]
    assert (decoded, type(decoded)) == (value, type(value))


def test_keys_become_texts() -> None:
    assert yaml.decode(b"{yes: 1, 2: 1, 2.5: 1, n: 1, 'n': 2}").obj == {"true": 1, "2": 1, "2.5": 1, "false": 1, "n": 2}


def test_duplicate_keys_are_reported_with_their_line() -> None:
    decoded = yaml.decode(b"apiVersion: v1\ndata:\n  k: v\n  k: w\n  n: 1\n  false: 2\n")
    assert decoded.obj["data"] == {"k": "w", "false": 2}
    assert decoded.duplicates == ['line 4: key "k" already set in map', "line 6: key false already set in map"]
    assert yaml.strict_text(decoded.duplicates[:1]) == 'yaml: unmarshal errors:\n  line 4: key "k" already set in map'


def test_aliases_and_merge_keys() -> None:
    decoded = yaml.decode(b"l: &l {a: b}\nm: {<<: *l, c: d}\no: *l\n").obj
    assert decoded == {"l": {"a": "b"}, "m": {"a": "b", "c": "d"}, "o": {"a": "b"}}
    assert decoded["l"] is not decoded["o"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d\n  broken",
            "yaml: line 4: did not find expected ',' or '}'",
        ),
        (b"a: b: c\n", "yaml: mapping values are not allowed in this context"),
        (b"a:\n\t- b\n", "yaml: line 2: found character that cannot start any token"),
        (b"a: *n", "yaml: unknown anchor 'n' referenced"),
        (b"a: &a [*a]", "yaml: anchor 'a' value contains itself"),
        (b"a: .nan", "json: unsupported value: NaN"),
        ("a: !!binary é".encode(), "yaml: !!binary value contains invalid base64 data"),
        (b"[" * 200_000, "yaml: exceeded max depth of 10000"),
        (b"- " * 3000, "yaml: exceeded max depth of 10000"),
    ],
)
def test_malformed_yaml_is_rejected(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        yaml.decode(data)
    assert str(raised.value) == message


def test_an_alias_bomb_is_rejected() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for before, name in zip("abcdefg", "bcdefgh", strict=True):
        bomb += f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
    with pytest.raises(DecodeError, match="yaml: document contains excessive aliasing"):
        yaml.decode(bomb.encode())


def test_only_the_first_document_counts() -> None:
    assert yaml.decode(b"---\na: b\n---\n{broken").obj == {"a": "b"}
    for empty in (b"", b"# comment", b"---\n---\na: b"):
        assert yaml.decode(empty).obj is None


@given(
    st.dictionaries(
        TEXT, TEXT | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none() | st.lists(TEXT), max_size=5
    )
)
def test_encoded_objects_are_decoded_unchanged(obj: dict[str, Any]) -> None:
    assert yaml.decode(yaml.encode(obj)) == (obj, [])


def test_encoding_sorts_keys() -> None:
    assert yaml.encode({"kind": "A", "d": [{"b": "on", "a": 1}]}) == b'd:\n- a: 1\n  b: "on"\nkind: A\n'


def test_text_that_yaml_would_take_for_a_time_is_quoted_as_go_quotes_it() -> None:
    """The server writes creationTimestamp in double quotes; what only looks like a time is plain."""
    for text in (
        "2026-11-22T05:54:58Z",
        "2026-01-01",
        "2026-1-1 10:00:00.5",
        "2026-11-22T05:54:58.123456+02:00",
        "190:20:30",
        "1:20.5",
    ):
        assert yaml.encode({"a": text}).decode() == f'a: "{text}"\n'
    for text in ("2026-13-01", "2026-02-30", "2026-01-01T10:00:00", "2026-01-01 10:00:00Z", "1:99", "2026-01", "="):
        assert yaml.encode({"a": text}).decode() == f"a: {text}\n"


def test_long_lines_are_folded_after_80_columns() -> None:
    words = " ".join(["word"] * 20)
    assert yaml.encode({"a": words}).decode() == f"a: {' '.join(['word'] * 16)}\n  {' '.join(['word'] * 4)}\n"


def test_keys_are_in_the_order_of_go_yaml() -> None:
    keys = ["A", "a-b", "a.1", "a_1", "a9", "a10", "a", "ab", "f:b", "f:a", ".", "x0", "x00", "x01", "x1", "x10", "x2"]
    written = [
        line.split(": ")[0].strip("'\"") for line in yaml.encode(dict.fromkeys(keys, True)).decode().splitlines()
    ]
    assert written == [
        ".",
        "A",
        "a",
        "a-b",
        "a.1",
        "a_1",
        "a9",
        "a10",
        "ab",
        "f:a",
        "f:b",
        "x0",
        "x00",
        "x1",
        "x01",
        "x2",
        "x10",
    ]


def test_keys_of_any_number_of_digits_have_an_order() -> None:
    long = "9" * 5000
    assert [line.partition(b":")[0] for line in yaml.encode({f"a{long}": 1, "a5": 2}).splitlines()].count(b"a5") == 1


def test_numbers_are_written_as_go_writes_them() -> None:
    values = {"b": True, "f": 1e21, "i": -3, "nil": None, "x": 0.5}
    assert yaml.encode(values).decode() == "b: true\nf: 1e+21\ni: -3\nnil: null\nx: 0.5\n"


_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def test_simple_json_is_read_without_the_yaml_parser() -> None:
    assert yaml_flow.decode(b'{"a": [1, "b", null], "c": {"d": true}}') == {"a": [1, "b", None], "c": {"d": True}}


@given(
    st.dictionaries(st.text(max_size=8), _json_values, max_size=4), st.sampled_from((None, 0, 2, "\t")), st.booleans()
)
def test_json_read_the_short_way_means_what_it_means_as_yaml(
    obj: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    data = json.dumps(obj, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    quick = yaml_flow.decode(data)
    if quick is not None:
        whole = yaml_events.decode(data)
        assert (quick, list(quick)) == (whole.obj, list(whole.obj))
        assert not whole.duplicates


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 1}',
        '{"a": 1.0}',
        '{"a": 9223372036854775808}',
        '{"a"\n: 1}',
        '{"a": "\\ud83d\\ude00"}',
        '{"a": 1}\n\t',
        '\t{"a": 1}',
        '{"%s": 1}' % ("k" * 1100),
        '{"a": NaN}',
        '["a"]',
        "{a: 1}",
    ],
)
def test_json_that_yaml_may_read_otherwise_is_read_as_yaml(text: str) -> None:
    assert yaml_flow.decode(text.encode()) is None


def test_json_is_read_the_short_way() -> None:
    assert yaml_flow.decode(b'{"b": [1, true, null, "yes"], "a": {"c": "010"}}\n') == {
        "a": {"c": "010"},
        "b": [1, True, None, "yes"],
    }


_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=90)
    | st.sampled_from(["a b " * 40, "\n x\ny", "items: []"])
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abz1-\n", max_size=5), inner, max_size=3),
    max_leaves=8,
)


class _Dumper(pyyaml.CSafeDumper):
    """PyYAML's own encoder, which makes a tree of nodes before it writes them, with go-yaml's styles."""

    yaml_implicit_resolvers: dict[Any, Any] = {}

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else '"' if yaml_output._quoted(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_mapping(dumper: Any, value: dict[str, Any]) -> Any:
    members = [(key, value[key]) for key in sorted_keys(value)]
    return dumper.represent_mapping("tag:yaml.org,2002:map", members)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
for kind in (bool, int, float, type(None)):
    _Dumper.add_representer(
        kind, lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:str", yaml_output._scalar(value))
    )


@given(st.dictionaries(st.sampled_from(["a", "items", "kind", "z"]), _VALUES, max_size=3))
def test_a_document_is_written_as_by_pyyaml(document: dict[str, Any]) -> None:
    expected: str = pyyaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=80)
    assert yaml_output.encode(document) == expected.encode("utf-8", "replace")


@given(
    st.sets(st.from_regex(r"([A-Za-z_./ -]{0,2}(0|[1-9][0-9]{0,3})(?![0-9A-Za-z]))*[A-Za-z_./ -]{0,2}", fullmatch=True))
)
def test_many_keys_have_the_order_of_few(keys: set[str]) -> None:
    simple = {key for key in keys if not re.search("[0-9][A-Za-z]|0[0-9]", key)}
    assert sorted(simple, key=yaml_key_order._natural) == yaml_key_order.sorted_keys(simple)


def test_many_keys_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_key_order, "_by_go", None)
    keys = [f"k{i}" for i in range(3_000)]
    assert yaml_key_order.sorted_keys(set(keys)) == keys


def test_a_large_map_is_written_without_a_tree_of_nodes() -> None:
    tracemalloc.start()
    try:
        body = yaml_output.encode({"data": {f"k{i}": "v" for i in range(20_000)}})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert body.count(b"\n") == 20_001
    assert peak < 40 * len(body)

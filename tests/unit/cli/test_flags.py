"""Tests of the declarations of flags, and of what is derived from them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tetrapod.apps.options.flag import ALL, declared_flags
from tetrapod.apps.options.options import Options
from tetrapod.cli.flags import flags_of, parse_options

ROOT = Path(__file__).parents[3]


def test_the_reference_document_is_generated_from_the_declarations() -> None:
    specification = importlib.util.spec_from_file_location("generate_flags", ROOT / "tools/generate_flags.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert (ROOT / "docs/reference/all-flags.md").read_text() == module.document(), (
        "run `python tools/generate_flags.py`"
    )


def test_flag_names_are_unique_and_have_a_section_and_a_help_text() -> None:
    flags = [flag for flag, _ in declared_flags(Options())]
    assert len({flag.name for flag in flags}) == len(flags)
    assert all(flag.section and flag.help.endswith(".") for flag in flags)
    assert all(flag.programs and flag.programs <= ALL for flag in flags)


@pytest.mark.parametrize("program", sorted(ALL))
def test_without_arguments_each_program_has_the_declared_defaults(program: str) -> None:
    assert parse_options(program, []) == Options()


def test_a_flag_is_accepted_only_by_its_programs() -> None:
    assert "etcd-servers" in {flag.name for flag, _ in flags_of("core")}
    assert "audit-policy-file" not in {flag.name for flag, _ in flags_of("core")}


def test_with_flags_changes_nested_values_and_leaves_others() -> None:
    options = Options().with_flags({"audit-log-mode": "batch", "data-dir": Path("x")})
    assert (options.audit.log.delivery.mode, options.audit.webhook.delivery.mode, options.data_dir) == (
        "batch",
        "batch",
        Path("x"),
    )
    assert Options().audit.log.delivery.mode == "blocking"
    with pytest.raises(KeyError, match="no-such-flag"):
        options.with_flags({"no-such-flag": 1})

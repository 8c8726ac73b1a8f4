"""The commands `tetrapod init` and `tetrapod create api`: names, files, and what they do not overwrite."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tetrapod.cli.main import main
from tetrapod.scaffold.names import plural_of

INIT = ("init", "library", "--group=library.example.com", "--kind=Book")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "library"
    done = invoke(*INIT, f"--directory={directory}")
    assert done.exit_code == 0, done.output
    return directory


def create(project: Path, *arguments: str) -> Result:
    return invoke("create", "api", f"--directory={project}", *arguments)


def contents(directory: Path) -> dict[str, str]:
    return {str(file.relative_to(directory)): file.read_text() for file in directory.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["Library"], "the name 'Library' is invalid: a DNS-1035 label must consist of lower case"),
        (["1library"], "the name '1library' is invalid: a DNS-1035 label"),
        (["import"], "the Python package import would hide another module"),
        (["json"], "the Python package json would hide another module"),
        (["library", "--group=Library.example.com"], "the group 'Library.example.com' is invalid"),
        (["library", "--group=library"], "it needs a domain, such as library.example.com"),
        (["library", "--version=1"], "the version '1' is invalid: it must match ^v"),
        (["library", "--version=v1gamma1"], "the version 'v1gamma1' is invalid"),
        (["library", "--kind=book"], "the kind 'book' is invalid: it must be in CamelCase"),
        (["library", "--kind=My_Book"], "the kind 'My_Book' is invalid: in lower case, a DNS-1035 label"),
        (["library", "--kind=BookList"], "kinds that end with List are those of lists"),
        (["library", "--kind=Status"], "the generated code uses the name"),
        (["library", "--kind=None"], "the generated code uses the name"),
        (["library", "--kind=Any"], "the generated code uses the name"),
        (["library", "--plural=Books"], "the plural 'Books' is invalid"),
    ],
)
def test_an_invalid_name_is_rejected_and_nothing_is_written(tmp_path: Path, arguments: list[str], error: str) -> None:
    defaults = ["--group=library.example.com", "--kind=Book"]
    done = invoke("init", *defaults, *arguments, f"--directory={tmp_path / 'project'}")
    assert (done.exit_code, error in done.output) == (1, True), done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Book", "books"), ("Box", "boxes"), ("Policy", "policies"), ("Key", "keys"), ("Branch", "branches")],
)
def test_the_plural_follows_the_rules_of_english(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_a_project_is_not_written_over_existing_files(project: Path) -> None:
    (project / "README.md").write_text("mine")
    before = contents(project)
    done = invoke(*INIT, f"--directory={project}")
    assert (done.exit_code, "not overwritten:" in done.output) == (1, True)
    assert contents(project) == before


def test_the_generated_python_and_yaml_can_be_parsed(project: Path) -> None:
    assert create(project, "--version=v1", "--kind=Class").exit_code == 0
    assert create(project, "--version=v1beta1", "--kind=Class").exit_code == 0
    files = contents(project)
    assert {name for name in files if "class_" in name} == {
        "library/class_/__init__.py",
        "library/class_/kind.py",
        "library/class_/strategy.py",
        "library/class_/v1.py",
        "library/class_/v1beta1.py",
        "library/class_/v1beta1_conversion.py",
        "manifests/samples/class__v1.yaml",
        "manifests/samples/class__v1beta1.yaml",
        "tests/test_class_.py",
        "tests/test_class__v1beta1.py",
    }
    for name, text in files.items():
        assert "$" not in text or name in ("README.md", "Dockerfile", ".github/workflows/ci.yml"), name
        if name.endswith(".py"):
            ast.parse(text)
        elif name.endswith((".yaml", ".yml")):
            list(yaml.safe_load_all(text))


def test_the_tests_of_a_kind_do_not_replace_those_of_all_kinds(tmp_path: Path) -> None:
    done = invoke("init", "library", "--group=library.example.com", "--kind=Server", f"--directory={tmp_path}")
    assert done.exit_code == 0, done.output
    assert {"tests/test_server.py", "tests/test_all_kinds.py"} <= contents(tmp_path).keys()


def test_versions_have_priorities_in_the_order_of_kubernetes(project: Path) -> None:
    for version in ("v1", "v1beta1", "v2"):
        assert create(project, f"--version={version}", "--kind=Book").exit_code == 0
    documents = yaml.safe_load_all((project / "manifests/apiservices.yaml").read_text())
    assert {each["spec"]["version"]: each["spec"]["versionPriority"] for each in documents} == {
        "v1alpha1": 10,
        "v1beta1": 20,
        "v1": 30,
        "v2": 40,
    }


def test_a_further_version_begins_with_the_models_and_the_sample_of_the_stored_one(project: Path) -> None:
    models = project / "library/book/v1alpha1.py"
    models.write_text(models.read_text().replace("title", "name"))
    assert create(project, "--version=v1", "--kind=Book").exit_code == 0
    copied = (project / "library/book/v1.py").read_text()
    assert copied == models.read_text().replace("in the version v1alpha1", "in the version v1")
    sample = yaml.safe_load((project / "manifests/samples/book_v1.yaml").read_text())
    assert (sample["apiVersion"], sample["spec"]["size"]) == ("library.example.com/v1", 2)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--version=v1alpha1", "--kind=Book"], "Book has the version v1alpha1 already"),
        (["--version=v1", "--kind=Book", "--plural=tomes"], "Book exists with the plural books, namespaced"),
        (["--version=v1", "--kind=Book", "--cluster-scoped"], "Book exists with the plural books, namespaced"),
        (["--version=v1", "--kind=Tome", "--plural=books"], "the kind Book has the same plural books; set --plural"),
        (["--version=v1", "--kind=Book", "--group=other.example.com"], "the project has the kind Book in"),
        (["--version=v1", "--kind=shelf"], "the kind 'shelf' is invalid"),
    ],
)
def test_changes_that_the_project_does_not_permit_are_rejected_and_nothing_is_written(
    project: Path, arguments: list[str], error: str
) -> None:
    before = contents(project)
    done = create(project, *arguments)
    assert (done.exit_code, error in done.output) == (1, True), done.output
    assert contents(project) == before


def test_a_generated_list_that_was_changed_by_hand_is_not_overwritten(project: Path) -> None:
    kinds = project / "library/kinds.py"
    kinds.write_text(kinds.read_text() + "# mine\n")
    before = contents(project)
    done = create(project, "--version=v1", "--kind=Shelf")
    assert (done.exit_code, "library/kinds.py was changed by hand" in done.output) == (1, True)
    assert contents(project) == before


def test_a_directory_without_a_project_is_reported(tmp_path: Path) -> None:
    done = create(tmp_path, "--version=v1", "--kind=Book")
    assert (done.exit_code, "run this command in a project of `tetrapod init`" in done.output) == (1, True)


def test_a_malformed_project_file_is_reported(project: Path) -> None:
    (project / "tetrapod.yaml").write_text("kinds: 3\n")
    done = create(project, "--version=v1", "--kind=Shelf")
    assert (done.exit_code, "tetrapod.yaml cannot be read" in done.output) == (1, True)

"""CustomResourceDefinitions from pydantic models, at Tetrapod and at a kube-apiserver.

Objects must be valid for the server exactly if they are valid for the model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from support.forms import SQLITE, STOCK, serving
from support.https_client import HttpsClient
from tetrapod.cli.main import main
from tetrapod.crds import Column, CustomResource, Scale, Version, validations

GROUP = "shop.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """An item of an order."""

    name: str = Field(pattern="^[a-z]+$")
    count: int = Field(ge=1, lt=100)


class Spec(BaseModel):
    model_config = ConfigDict(
        json_schema_extra=validations(("self.minimum <= self.maximum", "minimum exceeds maximum"))
    )

    customer: str = Field(min_length=1, max_length=5, description="The name of the customer.")
    minimum: int = Field(default=0, ge=0, le=10)
    maximum: int = Field(default=10, ge=0, le=10)
    factor: float | None = Field(default=None, gt=0.5)
    color: Color = Color.RED
    size: Literal["small", "large"] | None = None
    level: Literal[1, 2, 3] = 1
    port: int | str = 80
    items: Annotated[list[Item], Field(max_length=2)] = Field(
        default=[], json_schema_extra=validations(list_type="map", list_map_keys=["name"])
    )
    tags: set[Annotated[str, Field(max_length=4)]] = Field(default=set(), max_length=3)
    labels: dict[str, int] = {}
    free: dict[str, Any] = {}
    anything: Any = None
    replicas: int = Field(default=1, ge=0)


class Status(BaseModel):
    replicas: int = 0
    since: datetime | None = None
    token: UUID | None = None


class Order(BaseModel):
    """An order of a customer."""

    spec: Spec
    status: Status | None = None


class OldSpec(BaseModel):
    customer: str


class OldOrder(BaseModel):
    spec: OldSpec
    status: Status | None = None


ORDER = CustomResource(
    GROUP,
    "Order",
    [
        Version(
            "v1",
            Order,
            columns=[
                Column("Customer", ".spec.customer"),
                Column("Maximum", ".spec.maximum", "integer", priority=1, description="The limit."),
            ],
            scale=Scale(),
            selectable=[".spec.customer"],
        ),
        Version("v1alpha1", OldOrder, deprecated="use v1"),
    ],
    short_names=["od"],
    categories=["all"],
)


@pytest.fixture(scope="module", params=[SQLITE, pytest.param(STOCK, marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    with serving(request.param, tmp_path_factory.mktemp("server")) as client:
        yield client


@pytest.fixture(scope="module")
def orders(server: HttpsClient) -> str:
    """Create the definition, wait until it is served, and return the path of the orders."""
    created = server.call("POST", CRDS, ORDER.definition())
    assert (created.status, created.warnings) == (201, []), created.body
    server.until(lambda reply: _conditions(reply.body).get("Established") == "True", "GET", f"{CRDS}/orders.{GROUP}")
    path = f"/apis/{GROUP}/v1/namespaces/default/orders"
    server.until(lambda reply: reply.status == 200, "GET", path)
    return path


def _conditions(definition: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in definition.get("status", {}).get("conditions") or ()}


def order(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Order", "metadata": {"name": name}, "spec": spec}


def test_the_definition_is_established_without_a_warning(server: HttpsClient, orders: str) -> None:
    definition = server.call("GET", f"{CRDS}/orders.{GROUP}").body
    assert _conditions(definition) == {"NamesAccepted": "True", "Established": "True"}
    assert definition["spec"]["versions"] == ORDER.definition()["spec"]["versions"]


def test_defaults_columns_short_names_and_subresources_are_those_of_the_model(server: HttpsClient, orders: str) -> None:
    created = server.call("POST", f"{orders}?dryRun=All", order(customer="Ann")).body
    assert (
        created["spec"]
        == Order.model_validate({"spec": {"customer": "Ann"}}).model_dump(mode="json", exclude_none=True)["spec"]
    )
    resources = server.call("GET", f"/apis/{GROUP}/v1").body["resources"]
    assert {each["name"] for each in resources} == {"orders", "orders/status", "orders/scale"}
    assert (resources[0]["shortNames"], resources[0]["categories"]) == (["od"], ["all"])
    table = server.with_headers({"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).call("GET", orders).body
    columns = [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]]
    assert columns == [("Name", "string", 0), ("Customer", "string", 0), ("Maximum", "integer", 1)]
    old = server.call("GET", orders.replace("/v1/", "/v1alpha1/"))
    assert (old.status, "use v1" in old.warnings[0]) == (200, True)


TEXT = st.text("abcX ", max_size=6)
NUMBER = st.integers(-1, 12)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "customer": TEXT | st.none() | st.integers(),
    "minimum": NUMBER | TEXT | st.just(0.5),
    "maximum": NUMBER | st.booleans(),
    "factor": st.none() | st.sampled_from([0.25, 0.5, 0.75, 3]) | TEXT,
    "color": st.sampled_from(["red", "blue", "green", 1]),
    "size": st.sampled_from(["small", "large", "huge", None, 1]),
    "level": st.sampled_from([1, 3, 4, "1"]),
    "port": NUMBER | TEXT | st.sampled_from([0.5, True, []]),
    "items": st.lists(
        st.fixed_dictionaries({"name": TEXT}, optional={"count": st.integers(0, 101) | TEXT}),
        max_size=3,
        unique_by=lambda item: item["name"],
    ),
    "tags": st.lists(TEXT | st.integers(), max_size=4, unique=True) | TEXT,
    "labels": st.dictionaries(TEXT, NUMBER | TEXT, max_size=2) | st.lists(NUMBER, max_size=1),
    "free": st.dictionaries(TEXT, st.lists(NUMBER, max_size=1) | st.booleans(), max_size=2) | NUMBER,
    "anything": NUMBER | TEXT | st.lists(TEXT, max_size=1),
    "replicas": NUMBER,
    "unknown": TEXT,
}
CHANGES = st.lists(st.sampled_from(sorted(FIELDS)), max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: FIELDS[name] for name in names})
)
SPEC = CHANGES.map(lambda changes: {"customer": "Ann", "items": [{"name": "abc", "count": 1}], **changes}) | CHANGES


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(spec=SPEC)
def test_an_object_is_valid_for_the_server_exactly_if_it_is_for_the_model(
    server: HttpsClient, orders: str, spec: dict[str, Any]
) -> None:
    try:
        valid = Order.model_validate_json(json.dumps({"spec": spec}), strict=True).spec
        expected = valid.minimum <= valid.maximum  # the rule in CEL
    except ValidationError:
        expected = False
    answer = server.call("POST", f"{orders}?dryRun=All", order(**spec))
    assert answer.status == (201 if expected else 422), answer.body


@pytest.mark.parametrize(("status", "code"), [("2026-01-01T00:00:00Z", 200), ("yesterday", 422)])
def test_formats_are_validated(server: HttpsClient, orders: str, status: str, code: int) -> None:
    name = f"f{code}"
    assert server.call("POST", orders, order(name, customer="Ann")).status == 201
    patch = {"status": {"since": status, "token": "5ca7f4b1-27d3-4ec1-8a0e-6ddb23b1a1bd"}}
    patched = server.call("PATCH", f"{orders}/{name}/status", patch, "application/merge-patch+json")
    assert patched.status == code


# --- without a server


SHAPE = {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "(?=a)b"}}}


class Pair(BaseModel):
    pair: tuple[int, str]


class Either(BaseModel):
    either: Item | Status


class Keys(BaseModel):
    keys: dict[Annotated[str, Field(min_length=1)], int]


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (SHAPE, "version v1: .pattern: the pattern '(?=a)b' is not one of RE2"),
        (Pair, "version v1: .pair: tuples have no structural schema"),
        (Either, "version v1: .either: a union of types has no structural schema"),
        (Keys, "version v1: .keys: rules for keys have no structural schema"),
    ],
)
def test_a_model_without_a_structural_schema_is_rejected(model: Any, error: str) -> None:
    with pytest.raises(ValueError) as caught:
        CustomResource(GROUP, "Thing", [Version("v1", model)]).definition()
    assert error in str(caught.value)


def test_an_unknown_storage_version_is_rejected() -> None:
    with pytest.raises(ValueError, match="the storage version v2 is none of the versions"):
        CustomResource(GROUP, "Order", [Version("v1", Order)], storage_version="v2").definition()


MODULE = """
from pydantic import BaseModel
from tetrapod.crds import CustomResource, Version

class Box(BaseModel):
    spec: dict[str, str]

BOX = CustomResource("shop.example.com", "Box", [Version("v1", Box)], plural="boxes")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "made_models.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("made_models", None)


@pytest.mark.usefixtures("module")
def test_the_command_prints_the_definition_of_models_and_of_a_custom_resource() -> None:
    command = ["create", "crd", f"--group={GROUP}", "v1beta1=made_models:Box", "v1=made_models:Box"]
    options = ["--storage-version=v1", "--column=Spec=.spec", "--short-name=bx", "--cluster-scoped"]
    done = CliRunner().invoke(main, [*command, *options])
    assert done.exit_code == 0, done.output
    definition = yaml.safe_load(done.output)
    assert definition["metadata"]["name"] == "boxes.shop.example.com"
    assert definition["spec"]["scope"] == "Cluster"
    assert [(v["name"], v["storage"]) for v in definition["spec"]["versions"]] == [("v1beta1", False), ("v1", True)]
    assert definition["spec"]["versions"][0]["additionalPrinterColumns"] == [
        {"name": "Spec", "type": "string", "jsonPath": ".spec"}
    ]
    complete = CliRunner().invoke(main, ["create", "crd", "made_models:BOX"])
    assert yaml.safe_load(complete.output)["metadata"]["name"] == "boxes.shop.example.com"


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["made_models:Box"], "the group '' is invalid"),
        (["made_models:None"], "made_models:None: module 'made_models' has no attribute 'None'"),
        (["no_such_module:Box"], "No module named 'no_such_module'"),
        (["made_models"], "want MODULE:NAME, got made_models"),
        (["x1=made_models:Box", "--group=a.example.com"], "the version 'x1' is invalid"),
        (["made_models:BOX", "--group=a.example.com"], "a CustomResource is complete"),
        (["made_models:Box", "--group=a.example.com", "--column=Size"], "want NAME=PATH[:TYPE], got Size"),
    ],
)
def test_the_command_reports_what_is_wrong(arguments: list[str], error: str) -> None:
    done = CliRunner().invoke(main, ["create", "crd", *arguments])
    assert (done.exit_code != 0, error in done.output) == (True, True), done.output

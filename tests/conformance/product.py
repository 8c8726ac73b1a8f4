"""The description of the product that the CNCF's conformance programme asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

from cluster.settings import ROOT


def write_product(directory: Path) -> None:
    """Write product.yaml. The empty fields are for the organization that applies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    fields = {
        "vendor": "",
        "name": "Tetrapod",
        "version": project["version"],
        "website_url": "",
        "repo_url": "",
        "documentation_url": "",
        "product_logo_url": "",
        "type": "distribution",
        "description": project["description"],
        "contact_email_address": "",
    }
    (directory / "product.yaml").write_text(yaml.safe_dump(fields, sort_keys=False, width=120))

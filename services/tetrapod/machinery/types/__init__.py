"""The built-in types and resources, read from generated data (tools/generate_types.py)."""

from tetrapod.machinery.types.definitions import load, raw, schema_for
from tetrapod.machinery.types.resources import GroupFacts, ResourceFacts, SubresourceFacts, groups, resource_facts

__all__ = ["GroupFacts", "ResourceFacts", "SubresourceFacts", "groups", "load", "raw", "resource_facts", "schema_for"]

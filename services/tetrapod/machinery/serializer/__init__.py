"""Serialization of objects.

`json` and `yaml` convert between bytes and objects, and `recognize` reads apiVersion and kind.
"""

"""Conversion between bytes and objects: `json` and `yaml` decode and encode, `type_meta` reads apiVersion and kind."""

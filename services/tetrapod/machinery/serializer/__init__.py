"""Bytes to objects and back: `json` and `yaml`, and `recognize`, which reads what an object says it is."""

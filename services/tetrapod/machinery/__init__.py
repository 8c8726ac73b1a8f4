"""The Kubernetes API as values, without I/O: types, schemas, serialization, patches, managed fields, labels and CEL."""

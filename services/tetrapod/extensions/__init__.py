"""The extensions service: CustomResourceDefinitions and custom resources."""

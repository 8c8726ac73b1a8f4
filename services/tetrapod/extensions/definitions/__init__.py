"""The kind CustomResourceDefinition: strategy, defaults and store."""

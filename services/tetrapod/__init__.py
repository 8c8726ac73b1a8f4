"""The Kubernetes API server as four Python services: aggregator, core, extensions and auth."""

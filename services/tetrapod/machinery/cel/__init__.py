"""The Common Expression Language (CEL) as Kubernetes 1.37 configures it. `environment` is the entry point."""

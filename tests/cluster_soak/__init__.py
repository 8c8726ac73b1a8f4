"""A soak of the cluster of `make cluster`: churn of workloads, and restarts of every program."""

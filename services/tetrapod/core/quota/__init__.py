"""Resource quotas: what an object uses, which quotas it falls under, and how usage is charged (upstream: pkg/quota/v1)."""

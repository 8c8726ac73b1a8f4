"""Leader election by a Lease: of the replicas of a service one runs the controllers (upstream: client-go/tools/leaderelection)."""

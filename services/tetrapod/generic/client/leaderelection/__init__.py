"""Leader election with a Lease: one replica of a service runs the controllers (upstream: client-go/tools/leaderelection)."""

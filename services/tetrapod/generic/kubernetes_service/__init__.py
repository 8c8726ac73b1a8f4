"""How the aggregators that share a store announce themselves: Endpoints of the service `kubernetes`, and identity leases."""

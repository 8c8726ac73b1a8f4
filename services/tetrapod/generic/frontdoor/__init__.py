"""How the front doors of one store make themselves known: Endpoints of the service `kubernetes`, identity leases."""

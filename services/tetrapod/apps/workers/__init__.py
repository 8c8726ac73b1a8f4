"""Several processes that serve one port (--workers), and the supervisor that starts them."""

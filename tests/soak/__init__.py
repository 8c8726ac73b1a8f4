"""`make soak`: mixed traffic for minutes, and a proof that no process grows with the requests it has served."""

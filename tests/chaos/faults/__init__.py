"""What goes wrong: a fault is injected, held for a while, and healed."""

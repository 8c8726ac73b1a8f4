"""Secret: its definition, its validation, and the check of key pairs."""

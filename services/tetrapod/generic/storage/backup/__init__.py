"""All that a store holds at one revision: read from either store, kept in a file, written into either store."""

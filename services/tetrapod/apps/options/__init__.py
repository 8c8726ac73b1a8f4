"""The options of the programs. Each field declares the command-line flag that sets it."""

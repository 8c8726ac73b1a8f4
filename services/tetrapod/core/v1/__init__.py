"""The kinds of the core API group, "" (v1): a module for a small kind, a package for a large one."""

"""Discovery documents: groups, versions and resources."""

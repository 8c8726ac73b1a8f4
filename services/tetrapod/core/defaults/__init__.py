"""Upstream's SetDefaults_ functions: what is filled in after the schema's own defaults. Pure, on the object in place."""

"""The debug endpoints: profiles, z-pages and verbosity."""

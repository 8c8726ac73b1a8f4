"""Projects for aggregated API servers: `tetrapod init` writes one, and `tetrapod create api` extends it.

The templates are the files below `templates/`, with `$placeholders` of `string.Template`.
"""

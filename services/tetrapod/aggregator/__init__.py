"""The aggregator: the front proxy, which routes requests to core, extensions, auth and external API servers."""

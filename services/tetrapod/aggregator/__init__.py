"""The aggregator: the front proxy, which routes requests to the other services and to external API servers."""

"""The handlers of the verbs: they decode a request, call admission and the registry, and encode the response."""

"""A client of the API with informers and work queues."""

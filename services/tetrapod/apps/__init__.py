"""The programs: the four services, assembled from options as one process or as one process each."""

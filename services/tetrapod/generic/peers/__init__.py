"""Communication between the four services besides the Kubernetes API.

It defines names, paths and headers, which users never see.
"""

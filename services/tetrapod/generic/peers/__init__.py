"""Communication between the four services besides the Kubernetes API: names, paths and headers, which users never see."""

"""Functions that build the parts of a server from options: authentication, admission, audit, TLS, storage and so on."""

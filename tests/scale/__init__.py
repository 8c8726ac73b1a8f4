"""`make scale`: how large a cluster a server holds within the objectives of docs/SLOS.md."""

"""An external API server, written with `tetrapod.generic`: group `library.example.com`, books and shelves, its own SQLite database."""

"""The server's database: SQLite in one file, or PostgreSQL."""

"""Where the server keeps large files: a folder, or an object store."""

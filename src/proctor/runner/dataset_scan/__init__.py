"""Read foreign dataset files for a server: in a sandbox, because a file can be made to exhaust its reader."""

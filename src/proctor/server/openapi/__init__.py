"""The description of the API: an OpenAPI document for programs, and a page for people."""

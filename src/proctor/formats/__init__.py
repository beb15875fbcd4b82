"""Result files of other tools: read into ordinary run folders, and written from them.

One folder per tool. Nothing here runs an environment or a model; `dialects/` does that.
"""

"""Whether one result differs from another: runs paired task by task, with a verdict.

Pure functions from scores to values. Knows nothing of files, terminals or servers.
"""

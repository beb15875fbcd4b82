"""`proctor view`: the dashboard over run folders, on this machine alone, read-only and without a login."""

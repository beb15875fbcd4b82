"""Run folders as a store of runs: found on disk, read as they grow, watched while there are followers."""

"""Reading runs, rollout by rollout: the same lists, views, searches and routes over every store of runs."""

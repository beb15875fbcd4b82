"""Harbor: folders of tasks with a `task.toml`, played in containers as Harbor plays them."""

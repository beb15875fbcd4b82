"""The dashboard's built files, and how they are served: by `proctor server`, and by `proctor view`."""

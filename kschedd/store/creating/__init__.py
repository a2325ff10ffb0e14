"""Creation of objects from manifests, and replacement of existing objects."""

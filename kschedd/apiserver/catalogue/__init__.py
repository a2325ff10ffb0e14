"""The resources that are served, with their schemas, table columns and versions."""

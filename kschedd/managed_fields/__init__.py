"""Field ownership: sets of fields, server-side apply's merge, and metadata.managedFields."""

"""Who manages which fields of an object: sets of fields, server-side apply's merge, and metadata.managedFields."""

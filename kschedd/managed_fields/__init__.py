"""Field ownership: sets of fields, the merge of a server-side apply, and metadata.managedFields."""

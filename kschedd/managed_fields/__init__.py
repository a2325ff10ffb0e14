"""Field ownership, with sets of fields, the merge of server-side apply, and metadata.managedFields."""

"""A cluster as it stands, in a dump of any usual form: read, loaded, saved, redacted."""

"""A report of a run: one HTML page that needs nothing else, made from what an observer noted while the cluster ran."""

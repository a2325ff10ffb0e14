"""A report about a run: one self-contained HTML page, made from data that an observer recorded during the run."""

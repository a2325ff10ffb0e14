"""A report of a run: one self-contained HTML page, made from data that an observer recorded while the cluster ran."""

"""Results of a run: the decision log, measures, prices and tables."""

"""Commands that simulate: single runs, sweeps, tuning, plots, workloads and the evaluation of plugins."""

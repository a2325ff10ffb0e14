"""Many runs: specifications, their product, engines, rows, tables, plots and tuning."""

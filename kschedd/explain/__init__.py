"""Why here, why not there, and what would make it fit."""

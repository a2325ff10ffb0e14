"""Extension points, statuses, cycle state, registry, profiles, waiting pods."""

"""From a configuration file of any release to a `Config`."""

"""Loading of a configuration file of any release into a `Config`."""

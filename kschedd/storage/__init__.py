"""Storage: rules for claims, volumes and CSI drivers, as pure functions that plugins and controllers share."""

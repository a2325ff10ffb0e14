"""Storage: rules for claims, volumes and CSI drivers, as pure functions shared by plugins and controllers."""

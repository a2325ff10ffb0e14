"""Storage: the rules that claims, volumes and drivers follow, as pure functions shared by plugins and controllers."""

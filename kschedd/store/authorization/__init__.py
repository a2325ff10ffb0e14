"""Authorization by RBAC objects: rules, the default roles, and the judge of requests."""

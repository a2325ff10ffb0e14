"""Services, Endpoints, Ingresses and NetworkPolicies: defaults and validation."""

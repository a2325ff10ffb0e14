"""Custom resources: definitions, structural schemas, validation rules, scale."""

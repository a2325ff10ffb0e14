"""The served resources, with their schemas, table columns and versions."""

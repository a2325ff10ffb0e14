"""What a manifest becomes as a new object, or in the place of one."""

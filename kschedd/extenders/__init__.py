"""HTTP extenders: what they are asked, and how."""

"""The page in the browser: its files, and one file that contains all of them, for reports."""

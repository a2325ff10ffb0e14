"""The page in the browser: its files, logins, and the calls of methods that it makes."""

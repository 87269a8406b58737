"""Programs that show how minutebook is used; each is run by a test."""

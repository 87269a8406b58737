"""What changes, told to those who listen: from the view's fold to server-sent events."""

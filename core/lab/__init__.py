"""What makes a model smaller or faster, as arithmetic on plain arrays and numbers."""

"""Text, bytes and characters: the parts that core.tokens is built from."""

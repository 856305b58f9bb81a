"""The command line: arguments in, records out as text or JSON."""

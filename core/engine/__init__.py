"""Engines: something that reads token ids and returns what a model computed."""

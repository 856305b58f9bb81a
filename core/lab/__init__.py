"""What can be done to a model to make it smaller or faster, done and measured."""

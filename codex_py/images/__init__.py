"""Images for the model: looked into, shrunk where they are too large, and never sent damaged."""

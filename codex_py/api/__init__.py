"""The names that packages may use. They stay as they are, or a release note says how they change."""

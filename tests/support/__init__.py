"""What several tests share: models, data, checks, and the places of files."""

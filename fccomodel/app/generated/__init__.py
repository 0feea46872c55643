"""What is written from the registries: templates, samples, mock data, citations."""

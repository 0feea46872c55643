"""Files and texts that are generated: templates, sample models, mock data, citations."""

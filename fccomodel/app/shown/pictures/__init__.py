"""Pictures of an answer: the ROC curve of its scores, and the values of its groups."""

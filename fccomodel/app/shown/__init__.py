"""What people see: reports in terminals and notebooks, explanations, cards, pictures, pages."""

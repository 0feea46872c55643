"""Displays for people: reports in terminals and notebooks, explanations, cards, pictures, pages."""

"""Examining a network: doctors on its hosts probe it and answer each other. What it means is said elsewhere."""

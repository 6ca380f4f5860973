"""HTML and SVG building blocks."""

"""The papers behind this package: their synthetic problems, their theorems and their tables."""

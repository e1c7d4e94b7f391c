"""What machines say, on a person's terminal: escapes let through with care, colours, pictures, the prompt."""

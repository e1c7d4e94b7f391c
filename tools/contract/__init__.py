"""The wire's types, errors and sentences for other languages, and what proves that they say the same."""

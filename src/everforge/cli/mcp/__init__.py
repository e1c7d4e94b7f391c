"""`everforge mcp ...`: the way in for AI tools."""

"""The way in for AI tools: an MCP server in front of an Everforge server.

It is a client like any other: it knows the SDK and the wire, and asks a server over HTTP. Everything that it remembers, the server remembers for it.
"""

"""Other programs that speak MCP, and their configuration files: where they lie, what stands in them, and how an entry of ours gets in and out
again without a byte of anybody else's being touched.
"""

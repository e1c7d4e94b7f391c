"""What runs inside a sandbox: the agent (pid 1, standard library only, never runs user code) and the interpreter child."""

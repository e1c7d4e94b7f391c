"""The warden: starts sandboxes, holds their pipes, reaps and reports them, destroys them. It decides nothing.

Standard library only, besides `everforge.wire`. It is a door to root for whoever can open its socket, so it takes typed verbs and never a command
line or a specification from outside.
"""

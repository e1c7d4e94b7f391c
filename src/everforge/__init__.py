"""Python machines that never forget, on hardware you own."""

__version__ = "0.1.0"

"""The process that runs machines. HTTP comes later; what is here puts the concrete parts together."""

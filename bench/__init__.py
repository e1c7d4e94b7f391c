"""The numbers of SPECIFICATION.md, measured. Every one is a ratio of two things done in one run, in turns: these computers are noisy."""

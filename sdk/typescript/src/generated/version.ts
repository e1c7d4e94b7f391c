// Generated from src/everforge/wire by tools/make_contract.py; `make fix` writes it, `make check` compares.

export const VERSION = "0.1.0";

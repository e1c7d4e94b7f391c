from kit.fixtures import house

__all__ = ["house"]

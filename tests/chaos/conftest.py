from kit.fixtures import data, house, machines

__all__ = ["data", "house", "machines"]

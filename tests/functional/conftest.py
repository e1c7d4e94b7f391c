from kit.fixtures import data, machines

__all__ = ["data", "machines"]

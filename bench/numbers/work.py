"""The code that machines run while they are measured."""

IMPORTS = "import numpy, pandas"
# Something that needs both libraries and gives a value at once.
ANSWER = "int(pandas.DataFrame(numpy.arange(6).reshape(2, 3)).sum().sum())"
EXPECTED = "15"
BEGIN = f"{IMPORTS}\n{ANSWER}"
PLAIN = f"{IMPORTS}\nprint({ANSWER})"

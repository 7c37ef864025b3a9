"""Parameter identification from recordings: the methods of four papers and a default."""

from .methods import METHODS, Identification, identify, problem_of
from .options import Options

__all__ = ['METHODS', 'Identification', 'Options', 'identify', 'problem_of']

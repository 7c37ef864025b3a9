"""Parameter identification from recordings: the methods of four papers and a default."""

from .budget import Options
from .identify import METHODS, Identification, identify, problem_of

__all__ = ['METHODS', 'Identification', 'Options', 'identify', 'problem_of']

"""Unknown numbers of a robot file from recordings: four papers' ways, and a better default."""

from .budget import Options
from .identify import METHODS, Identification, identify, problem_of

__all__ = ['METHODS', 'Identification', 'Options', 'identify', 'problem_of']

"""Unknown numbers of a robot file from recordings: four papers' ways, and a better default."""

from .methods import METHODS, Identification, identify, problem_of
from .options import Options

__all__ = ['METHODS', 'Identification', 'Options', 'identify', 'problem_of']

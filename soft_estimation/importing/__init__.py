"""Converts recordings of other formats to bags: a table (CSV, c3d) plus a mapping of its columns.

table = read_table('run.csv', mapping)
write_bag(convert(table, mapping), 'run')
"""

from .convert import Sample, convert, write_bag
from .errors import ImportTrouble, MappingError
from .mapping import Mapping, load_mapping, mapping_names
from .tables import Table, read_table

__all__ = [
    'ImportTrouble',
    'Mapping',
    'MappingError',
    'Sample',
    'Table',
    'convert',
    'load_mapping',
    'mapping_names',
    'read_table',
    'write_bag',
]

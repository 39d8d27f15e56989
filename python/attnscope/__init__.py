from ._errors import Error
from .capture import capture, modules

class Error(RuntimeError):
    """What attnscope cannot do, in one line."""

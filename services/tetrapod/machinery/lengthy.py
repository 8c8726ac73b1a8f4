"""`Lengthy`: what has to be done takes so long that it must not be done on the event loop."""


class Lengthy(Exception):
    """Raised before or on the way, with nothing changed yet: whoever calls begins once more, in a thread."""

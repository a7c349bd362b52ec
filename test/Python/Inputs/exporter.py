"""An array as libraries have it that only speak DLPack."""


class Exporter:
    """An array of a library that only has DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

"""The passes of a batch norm in training whose kernels are measured."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Pass:
    """A function of the benchmark.

    data, parameters: the names of its inputs, with the sizes of the data and with one element per channel.
    result: the name of its result with the sizes of the data.
    channel_results: the names of the others, with one element per channel.
    """

    name: str
    data: tuple
    parameters: tuple
    result: str
    channel_results: tuple

    @property
    def inputs(self):
        return (*self.data, *self.parameters)

    @property
    def results(self):
        return (self.result, *self.channel_results)


BACKWARD = Pass("backward", ("grad_output", "input"), ("scale", "mean", "variance"), "grad_input",
                ("grad_scale", "grad_offset"))
FORWARD = Pass("forward", ("input",), ("scale", "offset"), "output", ("batch_mean", "inv_std"))
PASSES = {found.name: found for found in (BACKWARD, FORWARD)}

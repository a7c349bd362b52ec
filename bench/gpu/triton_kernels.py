"""The gradient in two passes, as one writes it in Triton: sums of parts of the rows, sums of these, then elements.

Data are [rows / S, C, S] in memory: S is 1 where channels are innermost. A program has a tile of rows and channels."""

import torch
import triton
import triton.language as tl

# Elements of a tile, channels of one where they are innermost, and programs of a kernel, at least if there are as many.
TILE, TILE_CHANNELS, PROGRAMS = 2048, 64, 1024
# Channels of a program that adds the sums of parts.
ADDED_CHANNELS = 8


@triton.jit
def _addresses(first, channel, rows, C: tl.constexpr, S: tl.constexpr, TILE_ROWS: tl.constexpr):
    row = first + tl.arange(0, TILE_ROWS)
    address = (row // S * (C * S) + row % S)[:, None] + (channel * S)[None, :]
    return address, (row < rows)[:, None] & (channel < C)[None, :]


@triton.jit
def _reduce(dy, x, mean, partial, rows, C: tl.constexpr, S: tl.constexpr, TILE_ROWS: tl.constexpr,
            TILE_C: tl.constexpr, PARTS: tl.constexpr):
    channel = tl.program_id(1) * TILE_C + tl.arange(0, TILE_C)
    part = tl.program_id(0)
    center = tl.load(mean + channel, channel < C, 0.0)[None, :]
    sum_dy = tl.zeros([TILE_ROWS, TILE_C], tl.float32)
    sum_dy_xmu = tl.zeros([TILE_ROWS, TILE_C], tl.float32)
    for first in range(part * TILE_ROWS, rows, PARTS * TILE_ROWS):
        address, mask = _addresses(first, channel, rows, C, S, TILE_ROWS)
        g = tl.load(dy + address, mask, 0.0).to(tl.float32)
        sum_dy += g
        sum_dy_xmu += g * (tl.load(x + address, mask, 0.0).to(tl.float32) - center)
    tl.store(partial + part * C + channel, tl.sum(sum_dy, 0), channel < C)
    tl.store(partial + (PARTS + part) * C + channel, tl.sum(sum_dy_xmu, 0), channel < C)


@triton.jit
def _add(inv_std, partial, grad_scale, grad_offset, C: tl.constexpr, TILE_C: tl.constexpr, PARTS: tl.constexpr):
    channel = tl.program_id(0) * TILE_C + tl.arange(0, TILE_C)
    inside = channel < C
    part = (tl.arange(0, PARTS) * C)[:, None] + channel[None, :]
    sum_dy = tl.sum(tl.load(partial + part, inside[None, :], 0.0), 0)
    sum_dy_xmu = tl.sum(tl.load(partial + PARTS * C + part, inside[None, :], 0.0), 0)
    tl.store(grad_scale + channel, sum_dy_xmu * tl.load(inv_std + channel, inside, 0.0), inside)
    tl.store(grad_offset + channel, sum_dy, inside)


@triton.jit
def _apply(dy, x, mean, inv_std, scale, grad_input, grad_scale, grad_offset, rows, C: tl.constexpr,
           S: tl.constexpr, TILE_ROWS: tl.constexpr, TILE_C: tl.constexpr):
    channel = tl.program_id(1) * TILE_C + tl.arange(0, TILE_C)
    inside = channel < C
    sum_dy, sum_dy_xhat = tl.load(grad_offset + channel, inside, 0.0), tl.load(grad_scale + channel, inside, 0.0)
    center, r = tl.load(mean + channel, inside, 0.0), tl.load(inv_std + channel, inside, 0.0)
    gain = (tl.load(scale + channel, inside, 0.0) * r)[None, :]
    slope = (sum_dy_xhat * r / rows)[None, :]
    address, mask = _addresses(tl.program_id(0) * TILE_ROWS, channel, rows, C, S, TILE_ROWS)
    g = tl.load(dy + address, mask, 0.0).to(tl.float32)
    centered = tl.load(x + address, mask, 0.0).to(tl.float32) - center[None, :]
    tl.store(grad_input + address, gain * (g - (sum_dy / rows)[None, :] - centered * slope), mask)


def bind(dy, x, mean, inv_std, scale, rows, channels, length):
    """A call that returns grad_input, grad_scale and grad_offset; `length` is S."""
    tile_channels = min(triton.next_power_of_2(channels), TILE_CHANNELS) if length == 1 else 1
    tile_rows = TILE // tile_channels
    tiles, blocks = triton.cdiv(rows, tile_rows), triton.cdiv(channels, tile_channels)
    parts = triton.next_power_of_2(min(triton.cdiv(PROGRAMS, blocks), tiles))
    sizes = {"C": channels, "S": length, "TILE_ROWS": tile_rows, "TILE_C": tile_channels}
    added = min(tile_channels, ADDED_CHANNELS)

    def call():
        partial = torch.empty((2, parts, channels), dtype=torch.float32, device=x.device)
        grad_input, grad_scale, grad_offset = torch.empty_like(x), torch.empty_like(mean), torch.empty_like(mean)
        _reduce[parts, blocks](dy, x, mean, partial, rows, **sizes, PARTS=parts)
        _add[(triton.cdiv(channels, added),)](inv_std, partial, grad_scale, grad_offset, channels, added, parts)
        _apply[tiles, blocks](dy, x, mean, inv_std, scale, grad_input, grad_scale, grad_offset, rows, **sizes)
        return grad_input, grad_scale, grad_offset

    return call

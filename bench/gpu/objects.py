"""What a compiled object has of each function: images of its kernels, and code for the host."""

import hashlib
import re
import struct

SYMBOL_TABLE, FUNCTION = 2, 2  # sh_type and the type in st_info. Source: ELF-64 Object File Format.


def read_symbols(data):
    """{name: (whether it is a function, its bytes)} of the symbols of a 64-bit ELF file that are defined in it."""
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    # Of each section: name, type, flags, address, offset, size, link.
    sections = [struct.unpack_from("<IIQQQQI", data, start + number * size) for number in range(count)]
    found = {}
    for _, kind, _, _, offset, length, link in sections:
        if kind != SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, 24):
            name, info, _, section, value, bytes_of_symbol = struct.unpack_from("<IBBHQQ", data, at)
            if not 0 < section < count:
                continue
            begin = value - sections[section][3] + sections[section][4]
            text = data[names + name : data.index(b"\0", names + name)].decode()
            found[text] = info & 15 == FUNCTION, data[begin : begin + bytes_of_symbol]
    return found


def images(symbols, function):
    """The images of the kernels of a function."""
    return [data for name, (_, data) in sorted(symbols.items()) if re.fullmatch(f"{function}_group_[0-9]+_binary", name)]


def hash_function(symbols, function):
    """Changes with the kernels of a function, whatever else the object has. Of code for the host, which has addresses,
    only the size counts."""
    found = hashlib.sha256()
    for image in images(symbols, function):
        found.update(hashlib.sha256(image).digest())
    for name, (is_function, data) in sorted(symbols.items()):
        if is_function and re.match(rf"(_mlir_ciface_)?{function}(?![0-9])", name):
            found.update(f"{name.replace(function, '')} {len(data)}\n".encode())
    return found.hexdigest()

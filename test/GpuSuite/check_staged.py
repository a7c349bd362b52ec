"""check_staged.py GPU_SUITE BUNDLE: the kernels in clusters whose blocks copy their tile in several steps, by their PTX, of
the items that `smoke` and `queued` run. Also what changes the hash of a function."""

import pathlib
import re
import sys

sys.path[:0] = [sys.argv[1], str(pathlib.Path(sys.argv[1]).parent)]

import objects
import plan

COPIES = {"cp.async.bulk.shared": "bulk", "cp.async.c": "asynchronous"}


def find_form(catalogue, name):
    """(layout, copies, blocks of a cluster) of a kernel with several steps, or None."""
    function = catalogue.function(name, False)
    (image,) = objects.images(objects.read_symbols(function.path.read_bytes()), function.name)
    kernels = dict(re.findall(r"\.entry (\w+)\((.*?)(?=\n\.visible|\Z)", image.decode(), re.DOTALL))
    text = kernels.get("one_pass", "")
    cluster = re.search(r"\.reqnctapercluster\D*(\d+)", text)
    # Each step has a barrier.
    if not cluster or text.count("mbarrier.init") < 2:
        return None
    (copies,) = {name for instruction, name in COPIES.items() if instruction in text}
    return catalogue.items[name].layout, copies, int(cluster[1])


catalogue = plan.Catalogue(pathlib.Path(sys.argv[2]))
for part, names in (("smoke", catalogue.smoke()), ("queued", catalogue.queued())):
    for form in sorted({form for name in names if (form := find_form(catalogue, name))}):
        types = sorted({catalogue.items[name].type for name in names if find_form(catalogue, name) == form})
        print(f"{part}: {form[0]}, {form[1]} copies, clusters of {form[2]}: {', '.join(types)}")

# Of two functions in one object, the hash of the one whose kernel changes.
first = catalogue.function(catalogue.smoke()[0], False)
second = next(found for name in catalogue.items if (found := catalogue.function(name, False)).path == first.path and found != first)
data = first.path.read_bytes()
(image,) = objects.images(objects.read_symbols(data), first.name)
before, after = (objects.read_symbols(each) for each in (data, data.replace(image, image.replace(b"one_pass", b"one-pass"))))
changes = [objects.hash_function(before, each.name) != objects.hash_function(after, each.name) for each in (first, second)]
print(f"hashes change with their own kernels: {changes == [True, False]}")

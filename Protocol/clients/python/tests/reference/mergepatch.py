"""JSON Merge Patch (RFC 7396), with members in order and untouched members as text."""

from . import texts


def merge(target, patch):
    """The target with the patch merged into it; `target` is None where there is nothing."""
    if patch.kind != "object":
        return patch
    changes = dict(patch.items)
    old = target.items if target is not None and target.kind == "object" else []
    last = {name: place for place, (name, _) in enumerate(old)}
    items = []
    for place, (name, value) in enumerate(old):
        if name not in changes:
            items.append((name, value))
        elif last[name] == place and changes[name].kind != "null":
            items.append((name, merge(value, changes[name])))
    items += [(name, merge(None, value)) for name, value in changes.items() if name not in last and value.kind != "null"]
    inside = ",".join(texts.node(name).text + ":" + value.text for name, value in items)
    return texts.Node("object", "{" + inside + "}", items)

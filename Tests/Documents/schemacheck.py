"""A validator for the part of JSON Schema (draft 2020-12) that Protocol/schemas uses. Unknown keywords are errors."""

import json
import pathlib
import re
from decimal import Decimal

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "Protocol" / "schemas"

_TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, Decimal)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
#: Keywords without a method: annotations, and those that another keyword needs or `check` itself applies.
_WORDS = {"$schema", "$defs", "title", "description", "then", "unevaluatedProperties"}


class Invalid(Exception):
    """A value that does not match its schema. The message has its path."""


def load(text):
    return json.loads(text, parse_float=Decimal)


class Schema:
    """A schema and its file, relative to which references are resolved."""

    _files = {}

    def __init__(self, path, pointer=""):
        self.path = path
        if path not in self._files:
            self._files[path] = load(path.read_text(encoding="utf-8"))
        self.value = self._files[path]
        for step in filter(None, pointer.split("/")):
            self.value = self.value[step]

    def within(self, value):
        """Returns a subschema of this one."""
        other = object.__new__(Schema)
        other.path, other.value = self.path, value
        return other

    def target(self):
        file, _, pointer = self.value["$ref"].partition("#")
        return Schema((self.path.parent / file).resolve() if file else self.path, pointer)

    def check(self, value, at="$"):
        """Returns the names of the members that the schema evaluates; raises Invalid if the value does not match.

        A member is evaluated by `properties` and the like of the schema, and of each subschema that applies to the same
        value and matches it. `unevaluatedProperties` applies to the other members.
        """
        if self.value is True:
            return set()
        if self.value is False:
            raise Invalid(f"{at}: no value is allowed here")
        evaluated = set()
        for word, argument in self.value.items():
            if word not in _WORDS:
                evaluated |= getattr(self, "_" + word.lstrip("$"))(argument, value, at) or set()
        if "unevaluatedProperties" in self.value:
            evaluated |= self._others(evaluated, self.value["unevaluatedProperties"], value, at)
        return evaluated

    def _evaluated(self, schema, value, at):
        """Returns the names of the members that a subschema evaluates; None if the value does not match."""
        try:
            return self.within(schema).check(value, at)
        except Invalid:
            return None

    def _others(self, names, schema, value, at):
        """Checks the members of the value that are not among `names`. Returns their names."""
        others = value.keys() - names if isinstance(value, dict) else set()
        for name in others:
            self.within(schema).check(value[name], f"{at}.{name}")
        return others

    def _ref(self, _, value, at):
        return self.target().check(value, at)

    def _type(self, names, value, at):
        names = names if isinstance(names, list) else [names]
        self._require(any(_TYPES[name](value) for name in names), at, f"is not of type {' or '.join(names)}: {value!r}")

    def _const(self, constant, value, at):
        self._require(value == constant and isinstance(value, type(constant)), at, f"is not {constant!r}")

    def _enum(self, values, value, at):
        self._require(value in values, at, f"is none of {values!r}: {value!r}")

    def _properties(self, properties, value, at):
        names = value.keys() & properties.keys() if isinstance(value, dict) else set()
        for name in names:
            self.within(properties[name]).check(value[name], f"{at}.{name}")
        return names

    def _additionalProperties(self, schema, value, at):
        return self._others(self.value.get("properties", {}).keys(), schema, value, at)

    def _required(self, names, value, at):
        missing = set(names) - value.keys() if isinstance(value, dict) else None
        self._require(not missing, at, f"has no member {missing}")

    def _dependentRequired(self, names, value, at):
        for name, needed in names.items():
            if isinstance(value, dict) and name in value:
                self._required(needed, value, at)

    def _items(self, schema, value, at):
        if isinstance(value, list):
            for place in range(len(self.value.get("prefixItems", [])), len(value)):
                self.within(schema).check(value[place], f"{at}[{place}]")

    def _prefixItems(self, schemas, value, at):
        if isinstance(value, list):
            for place, (schema, item) in enumerate(zip(schemas, value)):
                self.within(schema).check(item, f"{at}[{place}]")

    def _minItems(self, least, value, at):
        self._require(not isinstance(value, list) or len(value) >= least, at, f"has fewer than {least} items")

    def _maxItems(self, most, value, at):
        self._require(not isinstance(value, list) or len(value) <= most, at, f"has more than {most} items")

    def _minLength(self, least, value, at):
        self._require(not isinstance(value, str) or len(value) >= least, at, f"is shorter than {least}")

    def _pattern(self, pattern, value, at):
        self._require(
            not isinstance(value, str) or re.search(pattern, value), at, f"doesn't match {pattern}: {value!r}"
        )

    def _minimum(self, least, value, at):
        self._require(not _TYPES["number"](value) or value >= least, at, f"is below {least}")

    def _maximum(self, most, value, at):
        self._require(not _TYPES["number"](value) or value <= most, at, f"is above {most}")

    def _exclusiveMinimum(self, least, value, at):
        self._require(not _TYPES["number"](value) or value > least, at, f"is not above {least}")

    def _allOf(self, schemas, value, at):
        return set().union(*(self.within(schema).check(value, at) for schema in schemas))

    def _anyOf(self, schemas, value, at):
        fitting = self._fitting(schemas, value, at)
        self._require(fitting, at, f"matches none of the schemas: {value!r}")
        return set().union(*fitting)

    def _oneOf(self, schemas, value, at):
        fitting = self._fitting(schemas, value, at)
        self._require(len(fitting) == 1, at, f"matches {len(fitting)} of the schemas instead of one")
        return fitting[0]

    def _not(self, schema, value, at):
        self._require(self._evaluated(schema, value, at) is None, at, f"matches the schema under not: {value!r}")

    def _if(self, schema, value, at):
        evaluated = self._evaluated(schema, value, at)
        if evaluated is None:
            return set()
        return evaluated | self.within(self.value.get("then", True)).check(value, at)

    def _fitting(self, schemas, value, at):
        """Returns the names of the evaluated members for each schema that the value matches."""
        results = [self._evaluated(schema, value, at) for schema in schemas]
        return [names for names in results if names is not None]

    @staticmethod
    def _require(truth, at, otherwise):
        if not truth:
            raise Invalid(f"{at} {otherwise}")


def schema(name, pointer=""):
    """Returns a schema of Protocol/schemas, such as `methods/update`, `/$defs/params`."""
    return Schema((SCHEMAS / f"{name}.json").resolve(), pointer)

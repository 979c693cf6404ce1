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
_WORDS = {"$schema", "$defs", "title", "description"}


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
        if self.value is True:
            return
        if self.value is False:
            raise Invalid(f"{at}: no value is allowed here")
        for word, argument in self.value.items():
            if word not in _WORDS:
                getattr(self, "_" + word.lstrip("$"))(argument, value, at)

    def _valid(self, schema, value, at):
        try:
            self.within(schema).check(value, at)
        except Invalid:
            return False
        return True

    def _ref(self, _, value, at):
        self.target().check(value, at)

    def _type(self, names, value, at):
        names = names if isinstance(names, list) else [names]
        self._require(any(_TYPES[name](value) for name in names), at, f"is not of type {' or '.join(names)}: {value!r}")

    def _const(self, constant, value, at):
        self._require(value == constant and isinstance(value, type(constant)), at, f"is not {constant!r}")

    def _enum(self, values, value, at):
        self._require(value in values, at, f"is none of {values!r}: {value!r}")

    def _properties(self, properties, value, at):
        if isinstance(value, dict):
            for name in value.keys() & properties.keys():
                self.within(properties[name]).check(value[name], f"{at}.{name}")

    def _additionalProperties(self, schema, value, at):
        if isinstance(value, dict):
            for name in value.keys() - self.value.get("properties", {}).keys():
                self.within(schema).check(value[name], f"{at}.{name}")

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

    def _minLength(self, least, value, at):
        self._require(not isinstance(value, str) or len(value) >= least, at, f"is shorter than {least}")

    def _pattern(self, pattern, value, at):
        self._require(
            not isinstance(value, str) or re.search(pattern, value), at, f"doesn't match {pattern}: {value!r}"
        )

    def _minimum(self, least, value, at):
        self._require(not _TYPES["number"](value) or value >= least, at, f"is below {least}")

    def _exclusiveMinimum(self, least, value, at):
        self._require(not _TYPES["number"](value) or value > least, at, f"is not above {least}")

    def _allOf(self, schemas, value, at):
        for schema in schemas:
            self.within(schema).check(value, at)

    def _anyOf(self, schemas, value, at):
        self._require(
            any(self._valid(schema, value, at) for schema in schemas), at, f"matches none of the schemas: {value!r}"
        )

    def _oneOf(self, schemas, value, at):
        fitting = sum(self._valid(schema, value, at) for schema in schemas)
        self._require(fitting == 1, at, f"matches {fitting} of the schemas instead of one")

    @staticmethod
    def _require(truth, at, otherwise):
        if not truth:
            raise Invalid(f"{at} {otherwise}")


def schema(name, pointer=""):
    """Returns a schema of Protocol/schemas, such as `methods/update`, `/$defs/params`."""
    return Schema((SCHEMAS / f"{name}.json").resolve(), pointer)

"""The part of JSON Schema that docs/check.schema.json uses; a word that is not known here is an error."""

ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
TYPES = {
    "object": lambda x: isinstance(x, dict),
    "array": lambda x: isinstance(x, list),
    "string": lambda x: isinstance(x, str),
    "boolean": lambda x: isinstance(x, bool),
    "null": lambda x: x is None,
    "integer": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "number": lambda x: isinstance(x, (int, float)) and not isinstance(x, bool),
}


def resolve(schema, root):
    while "$ref" in schema:
        part = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        schema = part
    return schema


def faults(value, schema, root=None, where="$"):
    """What is wrong with value, as lines; none: it is valid."""
    root = schema if root is None else root
    schema = resolve(schema, root)
    found = []
    for word, rule in schema.items():
        if word == "type":
            names = [rule] if isinstance(rule, str) else rule
            if not any(TYPES[name](value) for name in names):
                return [f"{where}: expected {' or '.join(names)}, found {value!r:.60}"]
        elif word == "enum":
            if value not in rule:
                found.append(f"{where}: expected one of {rule}, found {value!r:.60}")
        elif word == "minimum":
            if TYPES["number"](value) and value < rule:
                found.append(f"{where}: expected at least {rule}, found {value}")
        elif word == "required":
            if isinstance(value, dict):
                found += [f"{where}: {name} is not there" for name in rule if name not in value]
        elif word == "properties":
            if isinstance(value, dict):
                for name in rule.keys() & value.keys():
                    found += faults(value[name], rule[name], root, f"{where}.{name}")
        elif word == "additionalProperties":
            if isinstance(value, dict):
                for name in value.keys() - schema.get("properties", {}).keys():
                    if rule is False:
                        found.append(f"{where}: {name} is not known")
                    else:
                        found += faults(value[name], rule, root, f"{where}.{name}")
        elif word == "items":
            if isinstance(value, list):
                for i, item in enumerate(value):
                    found += faults(item, rule, root, f"{where}[{i}]")
        elif word == "anyOf":
            each = [faults(value, choice, root, where) for choice in rule]
            found += min(each, key=len)
        elif word not in ANNOTATIONS:
            raise ValueError(f"{where}: JSON Schema's `{word}` is not known to tests/schema.py")
    return found

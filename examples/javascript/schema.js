// What the HTTP API uses of JSON Schema in what it is asked.
const formats = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i,
  int64: /^-?\d+$/,
};

const types = {
  string: (v) => typeof v === "string",
  integer: (v) => Number.isInteger(v),
  number: (v) => typeof v === "number",
  boolean: (v) => typeof v === "boolean",
  array: (v) => Array.isArray(v),
  object: (v) => typeof v === "object" && v !== null && !Array.isArray(v),
  null: (v) => v === null,
};

// Each rule gets the value of its keyword and the value to check. What is wrong it says.
const rules = {
  type: (type, v) => types[type](v) || `it is no ${type}`,
  const: (only, v) => v === only || `it has to be ${only}`,
  enum: (some, v) => some.includes(v) || `it is one of ${some.join(", ")}`,
  pattern: (text, v) => !types.string(v) || new RegExp(text, "u").test(v) || `it does not match ${text}`,
  format: (name, v) => formats[name].test(v) || `it is no ${name}`,
  minLength: (n, v) => !types.string(v) || [...v].length >= n || `it has less than ${n} characters`,
  maxLength: (n, v) => !types.string(v) || [...v].length <= n || `it has more than ${n} characters`,
  minimum: (n, v) => !types.number(v) || v >= n || `it is below ${n}`,
  maximum: (n, v) => !types.number(v) || v <= n || `it is above ${n}`,
  maxItems: (n, v) => !types.array(v) || v.length <= n || `it has more than ${n} items`,
  required: (names, v) => !types.object(v) || names.find((name) => v[name] === undefined) === undefined || `it lacks one of ${names.join(", ")}`,
};

const notes = new Set(["description", "default", "examples", "properties", "additionalProperties", "items"]);

// check throws a TypeError if a value does not fit its schema, or if the schema has a keyword that
// is not known here. at says in the error what the value is.
export function check(document, schema, value, at) {
  for (const [keyword, want] of Object.entries(schema)) {
    if (keyword === "$ref") {
      check(document, want.slice(2).split("/").reduce((node, step) => node[step], document), value, at);
    } else if (!notes.has(keyword)) {
      const said = rules[keyword] ? rules[keyword](want, value) : `the document has ${keyword}, which this client does not know`;
      if (said !== true) throw new TypeError(`${at}: ${said}`);
    }
  }
  if (schema.items && types.array(value)) value.forEach((v, i) => check(document, schema.items, v, `${at}[${i}]`));
  if (!types.object(value)) return;
  for (const [name, v] of Object.entries(value)) {
    const inner = schema.properties?.[name];
    if (inner && v !== undefined) check(document, inner, v, `${at}.${name}`);
    if (!inner && schema.additionalProperties === false) throw new TypeError(`${at} has no member ${name}`);
  }
}

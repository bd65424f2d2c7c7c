// From a schema to the fields of a form.
import { isRecord, resolve, type Schema } from './schema';

export interface Choice {
  readonly value: unknown;
  readonly label: string;
}

interface Common {
  /** The property's name; empty for the whole. */
  readonly name: string;
  readonly required: boolean;
  readonly schema: Schema;
}

export interface TextField extends Common {
  readonly kind: 'text';
  readonly multiline: boolean;
}
export interface NumberField extends Common {
  readonly kind: 'number';
  readonly integer: boolean;
}
export interface BooleanField extends Common {
  readonly kind: 'boolean';
}
export interface ChoiceField extends Common {
  readonly kind: 'choice';
  readonly choices: readonly Choice[];
}
/** An array of choices: a set of checkboxes. */
export interface ChoicesField extends Common {
  readonly kind: 'choices';
  readonly choices: readonly Choice[];
}
export interface ObjectField extends Common {
  readonly kind: 'object';
  readonly fields: readonly Field[];
}
export interface ArrayField extends Common {
  readonly kind: 'array';
  /** Made when it is needed: a schema may contain itself. */
  item(index: number): Field;
}
/** An object whose property names are free. */
export interface MapField extends Common {
  readonly kind: 'map';
  value(key: string): Field;
}
/** What has no better form is written as JSON. */
export interface JsonField extends Common {
  readonly kind: 'json';
}

export type Field =
  TextField | NumberField | BooleanField | ChoiceField | ChoicesField | ObjectField | ArrayField | MapField | JsonField;

/** Objects within objects further down than this are written as JSON. */
const MAX_DEPTH = 6;
/** Texts that may be longer than this get several lines. */
const LONG_TEXT = 200;

export function fieldOf(
  name: string,
  given: Schema | boolean | undefined,
  options: { required: boolean; root: Schema; depth?: number },
): Field {
  const { required, root, depth = 0 } = options;
  const resolved = isRecord(given) ? resolve(given as Schema, root) : {};
  const json: JsonField = { kind: 'json', name, required, schema: resolved ?? {} };
  if (!resolved || depth > MAX_DEPTH) return json;

  const schema = withoutNull(resolved, root);
  const common = { name, required, schema };
  const choices = choicesOf(schema);
  if (choices) return { kind: 'choice', choices, ...common };
  if (schema.oneOf || schema.anyOf) return { ...json, schema };

  switch (typeOf(schema)) {
    case 'string':
      return { kind: 'text', multiline: isLong(name, schema), ...common };
    case 'number':
      return { kind: 'number', integer: false, ...common };
    case 'integer':
      return { kind: 'number', integer: true, ...common };
    case 'boolean':
      return { kind: 'boolean', ...common };
    case 'array': {
      const items = isRecord(schema.items) ? resolve(schema.items as Schema, root) : undefined;
      if (!items || schema.prefixItems) return { ...json, schema };
      const many = choicesOf(items);
      if (many) return { kind: 'choices', choices: many, ...common };
      const item = (index: number) =>
        fieldOf(`${name} ${index + 1}`, items, { required: true, root, depth: depth + 1 });
      return { kind: 'array', item, ...common };
    }
    case 'object': {
      if (schema.properties) {
        const fields = Object.entries(schema.properties).map(([key, value]) =>
          fieldOf(key, value, { required: schema.required?.includes(key) ?? false, root, depth: depth + 1 }),
        );
        return { kind: 'object', fields, ...common };
      }
      const values = schema.additionalProperties;
      if (!isRecord(values)) return { ...json, schema };
      const value = (key: string) => fieldOf(key, values as Schema, { required: true, root, depth: depth + 1 });
      return { kind: 'map', value, ...common };
    }
    default:
      return { ...json, schema };
  }
}

/** The form of a tool's arguments or of a question: always an object. */
export function formOf(schema: unknown): ObjectField {
  const root = isRecord(schema) ? (schema as Schema) : {};
  const field = fieldOf('', { ...root, type: 'object', properties: root.properties ?? {} }, { required: true, root });
  return field.kind === 'object' ? field : { kind: 'object', name: '', required: true, schema: root, fields: [] };
}

function typeOf(schema: Schema): string | undefined {
  if (typeof schema.type === 'string') return schema.type;
  if (schema.type) return undefined;
  return schema.properties ? 'object' : schema.items ? 'array' : undefined;
}

/** A type or null is an optional value of that type: leaving it empty leaves it out. */
function withoutNull(schema: Schema, root: Schema): Schema {
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter(type => type !== 'null');
    return types.length === 1 ? { ...schema, type: types[0]! } : schema;
  }
  const kinds = schema.anyOf ?? schema.oneOf;
  if (!kinds) return schema;
  const others = kinds.filter(kind => kind.type !== 'null' && kind.const !== null);
  if (others.length !== 1 || others.length === kinds.length) return schema;
  const { anyOf: _anyOf, oneOf: _oneOf, ...rest } = schema;
  return { ...(resolve(others[0]!, root) ?? {}), ...rest };
}

function choicesOf(schema: Schema): Choice[] | undefined {
  if (schema.enum) {
    return schema.enum.map((value, index) => ({ value, label: schema.enumNames?.[index] ?? textOf(value) }));
  }
  if (schema.const !== undefined) return [{ value: schema.const, label: schema.title ?? textOf(schema.const) }];
  const kinds = schema.oneOf ?? schema.anyOf;
  if (!kinds?.length) return undefined;
  const choices: Choice[] = [];
  for (const kind of kinds) {
    if (kind.const !== undefined) choices.push({ value: kind.const, label: kind.title ?? textOf(kind.const) });
    else if (kind.enum) choices.push(...kind.enum.map(value => ({ value, label: textOf(value) })));
    else return undefined;
  }
  return choices;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function isLong(name: string, schema: Schema): boolean {
  if (schema.format || schema.pattern) return false;
  if (schema.maxLength !== undefined) return schema.maxLength > LONG_TEXT;
  if (typeof schema.default === 'string' && schema.default.includes('\n')) return true;
  return /^(prompt|text|body|content|message|query|code|description|markdown|html|script|sql)$/i.test(name);
}

// JSON Schema, as far as forms are made of it.

export interface Schema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  /** Display names of `enum`, from before `oneOf` was used for them. */
  enumNames?: string[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  properties?: Record<string, Schema | boolean>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema | boolean;
  prefixItems?: unknown[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
}

const MAX_REFS = 20;

/** What a local `$ref` points to, with the siblings of `$ref` laid over it. Undefined if it points nowhere. */
export function resolve(schema: Schema, root: Schema): Schema | undefined {
  let result = schema;
  for (let steps = 0; result.$ref !== undefined; steps += 1) {
    const { $ref, ...siblings } = result;
    const target = steps < MAX_REFS ? lookUp($ref, root) : undefined;
    if (!target) return undefined;
    result = { ...target, ...siblings };
  }
  return result;
}

function lookUp(ref: string, root: Schema): Schema | undefined {
  if (ref === '#') return root;
  if (!ref.startsWith('#')) return undefined;
  const pointer = ref.slice(1);
  const found = pointer.startsWith('/') ? byPointer(pointer, root) : byAnchor(pointer, root);
  return isRecord(found) ? (found as Schema) : undefined;
}

function byPointer(pointer: string, root: unknown): unknown {
  let at = root;
  for (const part of pointer.slice(1).split('/')) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = at[Number(key)];
    else if (isRecord(at) && Object.hasOwn(at, key)) at = at[key];
    else return undefined;
  }
  return at;
}

function byAnchor(anchor: string, at: unknown): unknown {
  if (typeof at !== 'object' || at === null) return undefined;
  if ((at as Record<string, unknown>)['$anchor'] === anchor) return at;
  for (const child of Object.values(at)) {
    const found = byAnchor(anchor, child);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

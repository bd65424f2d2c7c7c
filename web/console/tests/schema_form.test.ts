import { describe, expect, it } from 'vitest';
import { draftOf, emptyDraft, valueOf, type Draft } from '../src/schema_form/draft';
import { formOf, type Field } from '../src/schema_form/fields';

function field(schema: unknown, required = true): Field {
  return formOf({ properties: { it: schema }, required: required ? ['it'] : [] }).fields[0]!;
}

/** What a draft of one property gives: its value, or the message at a path. */
function read(schema: unknown, draft: Draft, { required = true, at = '' } = {}): unknown {
  const { value, problems } = valueOf(field(schema, required), draft);
  return problems.size > 0 ? (problems.get(at) ?? [...problems]) : value;
}

describe('from schema to field', () => {
  const kind = (schema: unknown) => field(schema).kind;

  it('knows the simple types', () => {
    expect(kind({ type: 'string' })).toBe('text');
    expect(field({ type: 'integer' })).toMatchObject({ kind: 'number', integer: true });
    expect(kind({ type: 'boolean' })).toBe('boolean');
    expect(kind({ type: 'array', items: { type: 'string' } })).toBe('array');
    expect(kind({ type: 'object', additionalProperties: { type: 'number' } })).toBe('map');
  });

  it('takes names of choices from enumNames, oneOf and anyOf', () => {
    const labels = (schema: unknown) => {
      const made = field(schema);
      return made.kind === 'choice' || made.kind === 'choices' ? made.choices.map(({ label }) => label) : made.kind;
    };
    expect(labels({ enum: ['a', 2, null] })).toEqual(['a', '2', 'null']);
    expect(labels({ enum: ['a', 'b'], enumNames: ['First', 'Second'] })).toEqual(['First', 'Second']);
    expect(labels({ oneOf: [{ const: 'a', title: 'First' }, { const: 'b' }] })).toEqual(['First', 'b']);
    expect(labels({ anyOf: [{ enum: ['a', 'b'] }, { const: 'c' }] })).toEqual(['a', 'b', 'c']);
    expect(labels({ type: 'array', items: { anyOf: [{ const: 'a', title: 'First' }] } })).toEqual(['First']);
  });

  it('follows references, also by anchor, with what stands beside them', () => {
    const form = formOf({
      $defs: { place: { $anchor: 'here', type: 'object', properties: { street: { type: 'string' } } } },
      properties: { home: { $ref: '#/$defs/place', description: 'Where' }, work: { $ref: '#here' } },
    });
    expect(form.fields.map(({ kind: each }) => each)).toEqual(['object', 'object']);
    expect(form.fields[0]!.schema.description).toBe('Where');
  });

  it('ends at a schema that contains itself', () => {
    const form = formOf({
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
      properties: { list: { $ref: '#/$defs/node' } },
    });
    let at: Field = form.fields[0]!;
    let depth = 0;
    while (at.kind === 'object') {
      at = at.fields[0]!;
      depth += 1;
    }
    expect(at.kind).toBe('json');
    expect(depth).toBeGreaterThan(3);
  });

  it('leaves unions, tuples and broken references to JSON', () => {
    expect(kind({ oneOf: [{ type: 'string' }, { type: 'number' }] })).toBe('json');
    expect(kind({ type: ['string', 'number'] })).toBe('json');
    expect(kind({ type: 'array', prefixItems: [{}], items: { type: 'string' } })).toBe('json');
    expect(kind({ $ref: '#/nowhere' })).toBe('json');
    expect(kind({ $ref: '#/properties/it' })).toBe('json');
    expect(kind(true)).toBe('json');
  });

  it('takes a type or null for an optional one', () => {
    expect(kind({ type: ['string', 'null'] })).toBe('text');
    expect(kind({ anyOf: [{ type: 'integer' }, { type: 'null' }] })).toBe('number');
  });

  it('makes no form of what is no schema', () => {
    expect(formOf(undefined).fields).toEqual([]);
    expect(formOf({ type: 'object' }).fields).toEqual([]);
  });
});

describe('from draft to value', () => {
  it('asks for what is required and leaves out what is not', () => {
    expect(read({ type: 'string' }, '')).toBe('Required');
    expect(read({ type: 'string' }, '', { required: false })).toBeUndefined();
    expect(read({ type: 'number' }, ' ')).toBe('Required');
    expect(read({ enum: ['a'] }, '')).toBe('Choose one');
    expect(read({ enum: ['a'] }, '', { required: false })).toBeUndefined();
  });

  it('sends a boolean that was never touched only if it must', () => {
    expect(read({ type: 'boolean' }, null)).toBe(false);
    expect(read({ type: 'boolean' }, null, { required: false })).toBeUndefined();
    expect(read({ type: 'boolean' }, false, { required: false })).toBe(false);
  });

  it('reads numbers within their limits', () => {
    expect(read({ type: 'number' }, '1e3')).toBe(1000);
    expect(read({ type: 'number' }, '0x')).toBe('Enter a number');
    expect(read({ type: 'integer' }, '1.5')).toBe('Enter a whole number');
    expect(read({ type: 'number', minimum: 1 }, '0')).toBe('At least 1');
    expect(read({ type: 'number', maximum: 1 }, '2')).toBe('At most 1');
    expect(read({ type: 'number', exclusiveMinimum: 0 }, '0')).toBe('More than 0');
    expect(read({ type: 'number', exclusiveMaximum: 1 }, '1')).toBe('Less than 1');
    expect(read({ type: 'number', multipleOf: 0.1 }, '0.3')).toBe(0.3);
    expect(read({ type: 'number', multipleOf: 2 }, '3')).toBe('A multiple of 2');
  });

  it('checks texts: length, pattern, format', () => {
    expect(read({ type: 'string', minLength: 2 }, '😀')).toBe('At least 2 characters');
    expect(read({ type: 'string', maxLength: 1 }, '😀')).toBe('😀');
    expect(read({ type: 'string', pattern: '^a' }, 'b')).toBe('Must match ^a');
    expect(read({ type: 'string', pattern: '(' }, 'b')).toBe('b');
    expect(read({ type: 'string', format: 'email' }, 'a@b')).toBe('a@b');
    expect(read({ type: 'string', format: 'email' }, 'a')).toMatch(/email/);
    expect(read({ type: 'string', format: 'uri' }, 'example.com')).toMatch(/URL/);
    expect(read({ type: 'string', format: 'date' }, '2025-02-30')).toMatch(/date/);
    expect(read({ type: 'string', format: 'date-time' }, '2025-02-03T04:05:06Z')).toBe('2025-02-03T04:05:06Z');
    expect(read({ type: 'string', format: 'date-time' }, '2025-02-03 04:05')).toMatch(/time/);
  });

  it('gives the value of a choice with its type', () => {
    expect(read({ enum: ['1', 1, null] }, '1')).toBe(1);
    expect(read({ enum: ['1', 1, null] }, '2')).toBeNull();
    expect(read({ type: 'array', items: { enum: ['a', 'b', 'c'] } }, ['0', '2'])).toEqual(['a', 'c']);
  });

  it('checks arrays: their size, their items', () => {
    const numbers = { type: 'array', items: { type: 'number' } };
    expect(read(numbers, ['1', '2'])).toEqual([1, 2]);
    expect(read(numbers, [], { required: false })).toBeUndefined();
    expect(read(numbers, [])).toEqual([]);
    expect(read(numbers, ['1', 'x'], { at: '/1' })).toBe('Enter a number');
    expect(read({ ...numbers, minItems: 1 }, [])).toBe('At least 1 item');
    expect(read({ ...numbers, maxItems: 1 }, ['1', '2'])).toBe('At most 1 item');
    expect(read({ ...numbers, uniqueItems: true }, ['1', '1.0'])).toBe('No item twice');
  });

  it('makes an object of a map, whatever its keys', () => {
    const map = { type: 'object', additionalProperties: { type: 'string' } };
    const value = read(map, [{ key: '__proto__', value: 'a' }]) as object;
    expect(Object.entries(value)).toEqual([['__proto__', 'a']]);
    const twice = [
      { key: 'a', value: '1' },
      { key: 'a', value: '2' },
    ];
    expect(read(map, twice, { at: '/1/key' })).toMatch(/already/);
    expect(read(map, [{ key: '', value: '1' }], { at: '/0/key' })).toBe('Name it');
  });

  it('leaves out an optional object in which nothing was entered', () => {
    const place = { type: 'object', properties: { street: { type: 'string' } }, required: ['street'] };
    expect(read(place, { street: '' }, { required: false })).toBeUndefined();
    expect(read(place, { street: '' }, { at: '/street' })).toBe('Required');
    expect(read(place, { street: 'High' }, { required: false })).toEqual({ street: 'High' });
  });

  it('says where JSON is wrong', () => {
    const any = { oneOf: [{ type: 'string' }, { type: 'number' }] };
    expect(read(any, '{"a": [1]}')).toEqual({ a: [1] });
    expect(read(any, '{')).toMatch(/^Not JSON/);
    expect(read(any, '', { required: false })).toBeUndefined();
  });
});

describe('drafts', () => {
  const form = formOf({
    properties: {
      text: { type: 'string', default: 'x' },
      flag: { type: 'boolean', default: true },
      choice: { enum: ['a', 'b'], default: 'b' },
      picks: { type: 'array', items: { enum: ['a', 'b'] }, default: ['b'] },
      rows: { type: 'array', items: { type: 'object', properties: { n: { type: 'number' } } } },
      map: { type: 'object', additionalProperties: { type: 'integer' } },
      any: {},
    },
  });

  it('begin with the defaults', () => {
    expect(valueOf(form, emptyDraft(form)).value).toEqual({ text: 'x', flag: true, choice: 'b', picks: ['b'] });
  });

  it('stand for any value that fits', () => {
    const value = {
      text: 'y',
      flag: false,
      choice: 'a',
      picks: [],
      rows: [{ n: 1 }, { n: 2 }],
      map: { k: 3 },
      any: [null],
    };
    const { picks: _, ...kept } = value;
    expect(valueOf(form, draftOf(form, value)).value).toEqual(kept);
  });

  it('of JSON leave out what the value has not, defaults included', () => {
    expect(valueOf(form, draftOf(form, { text: 'y' })).value).toEqual({ text: 'y' });
  });

  it('survive storage', () => {
    const draft = emptyDraft(form);
    expect(JSON.parse(JSON.stringify(draft))).toEqual(draft);
  });
});

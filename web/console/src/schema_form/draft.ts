// What was typed into a form, and the value it stands for. Drafts are JSON, so that they can be stored.
import { ownValue } from '../format';
import type { Choice, Field } from './fields';
import { isRecord } from './schema';

/** Text and JSON: what was typed. A choice: its index as text. An object: by name. A map: pairs, in order. */
export type Draft = string | boolean | null | Draft[] | Pair[] | { [name: string]: Draft };
export interface Pair {
  key: string;
  value: Draft;
}

/** Messages by path, such as `/address/street`. */
export type Problems = ReadonlyMap<string, string>;

/** The draft of a new form: with the schema's defaults. */
export function emptyDraft(field: Field): Draft {
  if (field.schema.default !== undefined) return draftOf(field, field.schema.default);
  switch (field.kind) {
    case 'text':
    case 'number':
    case 'json':
      return '';
    case 'choice':
      return field.required && field.choices.length === 1 ? '0' : '';
    case 'boolean':
      return null;
    case 'object':
      return Object.fromEntries(field.fields.map(each => [each.name, emptyDraft(each)]));
    case 'choices':
    case 'map':
      return [];
    case 'array':
      return Array.from({ length: field.required ? (field.schema.minItems ?? 0) : 0 }, (_, i) =>
        emptyDraft(field.item(i)),
      );
  }
}

/** The draft that stands for a value. */
export function draftOf(field: Field, value: unknown): Draft {
  if (value === undefined || (value === null && field.kind !== 'json' && field.kind !== 'choice')) {
    return blankDraft(field);
  }
  switch (field.kind) {
    case 'text':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'number':
      return typeof value === 'number' ? String(value) : JSON.stringify(value);
    case 'json':
      return JSON.stringify(value, null, 2);
    case 'boolean':
      return value === true;
    case 'choice':
      return indexOf(field.choices, value);
    case 'choices':
      return Array.isArray(value) ? value.map(each => indexOf(field.choices, each)).filter(index => index !== '') : [];
    case 'object': {
      const from = isRecord(value) ? value : {};
      return Object.fromEntries(field.fields.map(each => [each.name, draftOf(each, ownValue(from, each.name))]));
    }
    case 'array':
      return Array.isArray(value) ? value.map((each, index) => draftOf(field.item(index), each)) : [];
    case 'map':
      return isRecord(value)
        ? Object.entries(value).map(([key, each]) => ({ key, value: draftOf(field.value(key), each) }))
        : [];
  }
}

/** What of a stored draft fits the field; the rest is as in a new form. */
export function fittingDraft(field: Field, draft: unknown): Draft {
  switch (field.kind) {
    case 'text':
    case 'number':
    case 'json':
      return typeof draft === 'string' ? draft : emptyDraft(field);
    case 'choice':
      return typeof draft === 'string' && isChoice(field.choices, draft) ? draft : emptyDraft(field);
    case 'boolean':
      return typeof draft === 'boolean' || draft === null ? draft : emptyDraft(field);
    case 'choices':
      return isListOf(draft, (each): each is string => typeof each === 'string' && each !== '' && isChoice(field.choices, each))
        ? draft
        : emptyDraft(field);
    case 'object': {
      const from = isRecord(draft) ? draft : {};
      return Object.fromEntries(
        field.fields.map(each => [each.name, fittingDraft(each, ownValue(from, each.name))]),
      );
    }
    case 'array':
      return Array.isArray(draft) ? draft.map((each, index) => fittingDraft(field.item(index), each)) : emptyDraft(field);
    case 'map':
      return isListOf(draft, isPair)
        ? draft.map(({ key, value }) => ({ key, value: fittingDraft(field.value(key), value) }))
        : emptyDraft(field);
  }
}

function isChoice(choices: readonly Choice[], index: string): boolean {
  return index === '' || (/^\d+$/.test(index) && Number(index) < choices.length);
}
function isPair(value: unknown): value is { key: string; value: unknown } {
  return isRecord(value) && typeof value['key'] === 'string';
}
function isListOf<T>(value: unknown, isItem: (each: unknown) => each is T): value is T[] {
  return Array.isArray(value) && value.every(isItem);
}

function blankDraft(field: Field): Draft {
  if (field.kind === 'object') return Object.fromEntries(field.fields.map(each => [each.name, blankDraft(each)]));
  if (field.kind === 'boolean') return null;
  return field.kind === 'choices' || field.kind === 'array' || field.kind === 'map' ? [] : '';
}

function indexOf(choices: readonly Choice[], value: unknown): string {
  const text = JSON.stringify(value);
  const index = choices.findIndex(choice => JSON.stringify(choice.value) === text);
  return index < 0 ? '' : String(index);
}

/** The value of a draft, and what is wrong with it. Optional fields that are empty are left out. */
export function valueOf(field: Field, draft: Draft): { value: unknown; problems: Problems } {
  const problems = new Map<string, string>();
  const value = read(field, draft, '', problems);
  return { value, problems };
}

function read(field: Field, draft: Draft | undefined, path: string, problems: Map<string, string>): unknown {
  const fail = (message: string): undefined => {
    problems.set(path, message);
    return undefined;
  };
  switch (field.kind) {
    case 'text': {
      const text = typeof draft === 'string' ? draft : '';
      if (text === '') return field.required ? fail('Required') : undefined;
      const problem = textProblem(field.schema, text);
      return problem ? fail(problem) : text;
    }
    case 'number': {
      const text = typeof draft === 'string' ? draft.trim() : '';
      if (text === '') return field.required ? fail('Required') : undefined;
      const number = Number(text);
      if (!Number.isFinite(number)) return fail('Enter a number');
      const problem = numberProblem(field.schema, number, field.integer);
      return problem ? fail(problem) : number;
    }
    case 'boolean':
      return typeof draft === 'boolean' ? draft : field.required ? false : undefined;
    case 'choice': {
      if (typeof draft !== 'string' || draft === '') return field.required ? fail('Choose one') : undefined;
      return field.choices[Number(draft)]?.value;
    }
    case 'choices': {
      const picked = Array.isArray(draft) ? draft.map(index => field.choices[Number(index)]?.value) : [];
      if (picked.length === 0 && !field.required) return undefined;
      return sizeProblem(field, picked, fail) ? undefined : picked;
    }
    case 'json': {
      const text = typeof draft === 'string' ? draft : '';
      if (text.trim() === '') return field.required ? fail('Required, as JSON') : undefined;
      try {
        return JSON.parse(text);
      } catch (error) {
        return fail(`Not JSON: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    case 'object': {
      const from = isRecord(draft) ? (draft as Record<string, Draft>) : {};
      // An optional object in which nothing was entered is left out, so what it requires is not asked for.
      if (!field.required && field.fields.every(each => isBlank(each, ownValue(from, each.name)))) return undefined;
      const result: Record<string, unknown> = {};
      for (const each of field.fields) {
        const value = read(each, ownValue(from, each.name), `${path}/${each.name}`, problems);
        if (value !== undefined) result[each.name] = value;
      }
      return result;
    }
    case 'array': {
      const items = Array.isArray(draft) ? (draft as Draft[]) : [];
      if (items.length === 0 && !field.required) return undefined;
      const result = items.map((item, index) => read(field.item(index), item, `${path}/${index}`, problems));
      return sizeProblem(field, result, fail) ? undefined : result;
    }
    case 'map': {
      const pairs = Array.isArray(draft) ? (draft as Pair[]) : [];
      if (pairs.length === 0 && !field.required) return undefined;
      const result: Record<string, unknown> = {};
      pairs.forEach(({ key, value }, index) => {
        const at = `${path}/${index}`;
        if (key === '') problems.set(`${at}/key`, 'Name it');
        else if (Object.hasOwn(result, key)) problems.set(`${at}/key`, 'There is one of that name already');
        const given = read(field.value(key), value, at, problems);
        Object.defineProperty(result, key, { value: given, enumerable: true, configurable: true, writable: true });
      });
      return result;
    }
  }
}

function isBlank(field: Field, draft: Draft | undefined): boolean {
  if (draft === undefined || draft === null || draft === '') return true;
  if (Array.isArray(draft)) return draft.length === 0;
  if (field.kind === 'object' && isRecord(draft)) {
    return field.fields.every(each => isBlank(each, ownValue(draft as Record<string, Draft>, each.name)));
  }
  return false;
}

function textProblem(schema: Field['schema'], text: string): string | undefined {
  const length = [...text].length;
  if (schema.minLength !== undefined && length < schema.minLength)
    return `At least ${count(schema.minLength, 'character')}`;
  if (schema.maxLength !== undefined && length > schema.maxLength)
    return `At most ${count(schema.maxLength, 'character')}`;
  if (schema.pattern !== undefined && matches(schema.pattern, text) === false) return `Must match ${schema.pattern}`;
  return formatProblem(schema.format, text);
}

function matches(pattern: string, text: string): boolean | undefined {
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return undefined; // The server knows what it means by it.
  }
}

function formatProblem(format: string | undefined, text: string): string | undefined {
  switch (format) {
    case 'email':
      return /^[^\s@]+@[^\s@]+$/.test(text) ? undefined : 'Enter an email address, such as ada@example.com';
    case 'uri':
    case 'url':
      return URL.canParse(text) ? undefined : 'Enter a whole URL, such as https://example.com/';
    case 'date':
      return isDate(text) ? undefined : 'Enter a date as YYYY-MM-DD';
    case 'date-time':
      return /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) &&
        !Number.isNaN(Date.parse(text))
        ? undefined
        : 'Enter a time as YYYY-MM-DDThh:mm:ssZ';
    default:
      return undefined;
  }
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function numberProblem(schema: Field['schema'], number: number, integer: boolean): string | undefined {
  if (integer && !Number.isInteger(number)) return 'Enter a whole number';
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (minimum !== undefined && number < minimum) return `At least ${minimum}`;
  if (maximum !== undefined && number > maximum) return `At most ${maximum}`;
  if (exclusiveMinimum !== undefined && number <= exclusiveMinimum) return `More than ${exclusiveMinimum}`;
  if (exclusiveMaximum !== undefined && number >= exclusiveMaximum) return `Less than ${exclusiveMaximum}`;
  if (multipleOf && Math.abs(number / multipleOf - Math.round(number / multipleOf)) > 1e-9) {
    return `A multiple of ${multipleOf}`;
  }
  return undefined;
}

function sizeProblem(field: Field, items: unknown[], fail: (message: string) => undefined): boolean {
  const { minItems, maxItems, uniqueItems } = field.schema;
  if (minItems !== undefined && items.length < minItems) fail(`At least ${count(minItems, 'item')}`);
  else if (maxItems !== undefined && items.length > maxItems) fail(`At most ${count(maxItems, 'item')}`);
  else if (uniqueItems && new Set(items.map(item => JSON.stringify(item))).size < items.length) fail('No item twice');
  else return false;
  return true;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}

// What is stored, or said by another page, may come from another version of this library or from something else
// altogether. Whatever is read goes through a shape, which says whether a value is what it must be.

export type Shape<T> = (value: unknown) => value is T;
export type Shaped<S> = S extends Shape<infer T> ? T : never;

/** Values that are nested deeper cannot be shown, nor written again. */
const MAX_DEPTH = 200;

/** The value that the text stands for; undefined if it is no JSON, or not of that shape. */
export function decode<T>(json: string, shape: Shape<T>): T | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return shape(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const text: Shape<string> = value => typeof value === 'string';
export const flag: Shape<boolean> = value => typeof value === 'boolean';
export const number: Shape<number> = (value): value is number => typeof value === 'number' && Number.isFinite(value);
export const count: Shape<number> = (value): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
/** Milliseconds since the epoch that a `Date` can hold. */
export const time: Shape<number> = (value): value is number => number(value) && Math.abs(value) <= 8.64e15;

/** Anything, unless it is nested without end. */
export const anything: Shape<unknown> = (value): value is unknown => {
  let level = [value];
  for (let depth = 0; level.length > 0; ++depth) {
    if (depth > MAX_DEPTH) return false;
    const next: unknown[] = [];
    for (const each of level) if (typeof each === 'object' && each !== null) for (const child of Object.values(each)) next.push(child);
    level = next;
  }
  return true;
};

export function matching(pattern: RegExp): Shape<string> {
  return (value): value is string => text(value) && pattern.test(value);
}

export function oneOf<const T extends readonly (string | number | boolean | null)[]>(...values: T): Shape<T[number]> {
  return (value): value is T[number] => values.includes(value as T[number]);
}

export function either<A, B>(first: Shape<A>, second: Shape<B>): Shape<A | B> {
  return (value): value is A | B => first(value) || second(value);
}

/** Of the shape, and holds the condition. */
export function when<T>(shape: Shape<T>, condition: (value: T) => boolean): Shape<T> {
  return (value): value is T => shape(value) && condition(value);
}

/** May be missing. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value): value is T | undefined => value === undefined || shape(value);
}

export function listOf<T>(shape: Shape<T>): Shape<T[]> {
  return (value): value is T[] => Array.isArray(value) && value.every(shape);
}

export const record: Shape<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && anything(value);

/** By names that are not known. */
export function recordOf<T>(shape: Shape<T>): Shape<Record<string, T>> {
  return (value): value is Record<string, T> => record(value) && Object.values(value).every(shape);
}

type MayBeMissing<T> = unknown extends T ? false : undefined extends T ? true : false;
type Optional<M> = { [K in keyof M]: MayBeMissing<Shaped<M[K]>> extends true ? K : never }[keyof M];
type Members<M> = { [K in Exclude<keyof M, Optional<M>>]: Shaped<M[K]> } & { [K in Optional<M>]?: Shaped<M[K]> };

/** With these members of its own; others are left alone. */
export function object<M extends Record<string, Shape<unknown>>>(members: M): Shape<Members<M>> {
  const names = Object.keys(members);
  return (value): value is Members<M> =>
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    names.every(name => members[name]!(Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined));
}

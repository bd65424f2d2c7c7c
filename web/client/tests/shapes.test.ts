import { expect, test } from 'vitest';
import {
  anything, count, decode, either, flag, listOf, matching, number, object, oneOf, optional, record, recordOf, text, time, when,
} from '../src/shapes.js';

test('simple values are told apart', () => {
  const samples: unknown[] = ['x', 5, -1, 0.5, true, null, [], {}, Number.NaN, 1e300, undefined];
  const fits = (shape: (value: unknown) => boolean): unknown[] => samples.filter(each => shape(each));
  expect(fits(text)).toEqual(['x']);
  expect(fits(flag)).toEqual([true]);
  expect(fits(number)).toEqual([5, -1, 0.5, 1e300]);
  expect(fits(count)).toEqual([5]);
  expect(fits(time), 'a Date can be made of it').toEqual([5, -1, 0.5]);
  expect(fits(oneOf('x', null))).toEqual(['x', null]);
  expect(fits(either(text, flag))).toEqual(['x', true]);
  expect(fits(record)).toEqual([{}]);
  expect(fits(optional(text))).toEqual(['x', undefined]);
  expect(fits(matching(/^[a-z]$/))).toEqual(['x']);
  expect(fits(when(number, value => value > 1))).toEqual([5, 1e300]);
});

test('what is inside must fit too', () => {
  const shape = object({ name: text, tags: optional(listOf(text)), sizes: optional(recordOf(count)) });
  expect(shape({ name: 'a' })).toBe(true);
  expect(shape({ name: 'a', tags: ['b'], sizes: { c: 1 }, more: null })).toBe(true);
  for (const odd of [null, 5, 'a', [], {}, { name: 5 }, { name: 'a', tags: 'b' }, { name: 'a', tags: [5] }, { name: 'a', tags: null },
    { name: 'a', sizes: [1] }, { name: 'a', sizes: { c: -1 } }])
    expect(shape(odd), JSON.stringify(odd)).toBe(false);
});

test('a member is one of the value itself, not of all objects', () => {
  const shape = object({ toString: optional(text), constructor: optional(text) });
  expect(shape({})).toBe(true);
  expect(decode('{"__proto__":{"name":"inherited"}}', object({ name: text }))).toBeUndefined();
  const odd = decode('{"__proto__":{"polluted":true},"name":"own"}', object({ name: text }))!;
  expect(odd.name).toBe('own');
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
});

test('what is no JSON, and what is nested without end, is nothing', () => {
  expect(decode('{broken', anything)).toBeUndefined();
  expect(decode('', anything)).toBeUndefined();
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
  expect(decode(nested(100), anything)).toBeDefined();
  expect(decode(nested(5000), anything)).toBeUndefined();
  expect(decode(nested(1_000_000), anything)).toBeUndefined();
  expect(decode(`{"data":${nested(5000)}}`, record)).toBeUndefined();
});

import { expect, test } from 'vitest';
import { Position } from '../src/position.js';

test('moves with what is handled', () => {
  const position = new Position();
  for (const id of ['a', 'b']) {
    expect(position.arrive(id)).toBe(true);
    position.done(id);
  }
  expect(position.stored()).toEqual({ cursor: 'b', handled: undefined });
  expect(position.received).toBe('b');
});

test('stays before an open question, and knows what was handled after it', () => {
  const position = new Position({ cursor: 'a' });
  for (const id of ['question', 'c', 'd']) position.arrive(id);
  position.done('c');
  position.done('d');
  expect(position.stored()).toEqual({ cursor: 'a', handled: ['c', 'd'] });
  expect(position.received).toBe('d');
  position.done('question');
  expect(position.stored()).toEqual({ cursor: 'd', handled: undefined });
});

test('can begin anew from what is stored', () => {
  const position = new Position({ cursor: 'a' });
  for (const id of ['question', 'c']) position.arrive(id);
  position.done('c');
  position.rewind();
  expect(position.received).toBe('a');
  expect(position.arrive('question')).toBe(true);
  expect(position.arrive('c')).toBe(false);
});

test('a later page load does not handle again what was handled', () => {
  const later = new Position({ cursor: 'a', handled: ['c', 'd'] });
  expect(later.received).toBe('a');
  expect(later.arrive('question')).toBe(true);
  expect(later.arrive('c')).toBe(false);
  // Reloaded once more in the middle of the replay: nothing of this is forgotten.
  expect(later.stored()).toEqual({ cursor: 'a', handled: ['c', 'd'] });
  expect(later.arrive('d')).toBe(false);
  expect(later.arrive('e')).toBe(true);
  later.done('e');
  later.done('question');
  expect(later.stored()).toEqual({ cursor: 'e', handled: undefined });
});

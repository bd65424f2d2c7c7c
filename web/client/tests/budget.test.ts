import { expect, test } from 'vitest';
import { Budget } from '../src/budget.js';
import { anything } from '../src/shapes.js';
import { MemoryStorage, Shelf } from '../src/storage.js';

/** A storage that holds so many characters, calls that have ended, oldest first, and those that had to go. */
function room(limit: number, quota = Infinity) {
  const area = new MemoryStorage();
  const put = area.setItem.bind(area);
  let writes = 0;
  const used = (): number => [...Array(area.length).keys()].reduce((sum, at) => sum + area.getItem(area.key(at)!)!.length, 0);
  area.setItem = (key, value) => {
    ++writes;
    if (used() - (area.getItem(key)?.length ?? 0) + value.length > quota) throw new Error('QuotaExceededError');
    put(key, value);
  };
  const ended: string[] = [];
  const gone: string[] = [];
  const shelf = new Shelf(area, '');
  const budget = new Budget(shelf, limit, () => ended, call => gone.push(call));
  const keys = (): string[] => shelf.keys().sort();
  return { area, budget, shelf, ended, gone, keys, writes: () => writes };
}
const x = (length: number): string => 'x'.repeat(length);

test('the oldest that have ended make room, and no more of them than have to', () => {
  const { budget, ended, gone, keys } = room(300);
  for (const call of ['1', '2', '3']) expect(budget.put(call, call, x(89))).toBe(true);
  ended.push('1', '2', '3');
  expect(budget.put('4', '4', x(99))).toBe(true);
  expect(gone).toEqual(['1']);
  expect(keys()).toEqual(['2', '3', '4']);
});

test('nothing goes for what can never fit', () => {
  const { budget, ended, gone, keys, writes } = room(300);
  for (const call of ['1', '2', '3']) budget.put(call, call, x(89));
  ended.push('1', '2', '3');
  const before = writes();
  expect(budget.put('4', '4', x(300))).toBe(false);
  expect(writes(), 'it is known without trying').toBe(before);
  expect(gone).toEqual([]);
  expect(keys()).toEqual(['1', '2', '3']);
  expect(budget.has('4')).toBe(false);
});

test('a storage that others have filled gives back what was taken out in vain', () => {
  const { area, budget, shelf, ended, gone, keys } = room(10_000, 500);
  area.setItem('other', x(300));
  for (const call of ['1', '2']) budget.put(call, call, x(80));
  budget.put('1', '1.result', x(20));
  ended.push('1', '2');
  expect(budget.put('3', '3', x(250))).toBe(false);
  expect(gone).toEqual([]);
  expect(keys()).toEqual(['1', '1.result', '2', 'other']);
  expect(shelf.raw('1.result')).toBe(x(20));
  expect(budget.put('3', '3', x(100))).toBe(true);
  expect(gone).toEqual(['1']);
});

test('running calls stay, and so does the one that is written', () => {
  const { budget, ended, gone } = room(200);
  budget.put('running', 'a', x(90));
  budget.put('ended', 'b', x(90));
  ended.push('ended');
  expect(budget.put('ended', 'b.result', x(50))).toBe(false);
  expect(budget.put('ended', 'b', x(100))).toBe(true);
  expect(gone).toEqual([]);
});

test('what the session needs finds room, whatever calls may take', () => {
  const { budget, ended, gone, shelf } = room(200, 200);
  budget.put('1', '1', x(150));
  ended.push('1');
  expect(budget.putEssential('session', x(100))).toBe(true);
  expect(gone).toEqual(['1']);
  expect(shelf.raw('session')).toBe(x(100));
});

test('room that was given back can be used again', () => {
  const { budget } = room(100);
  for (let round = 0; round < 10; ++round) {
    expect(budget.put('1', '1', x(60))).toBe(true);
    expect(budget.put('1', '2', x(30))).toBe(true);
    budget.remove('1', '2');
    if (round % 2 === 0) budget.erase('1');
  }
});

test('what belongs to no call is swept away', () => {
  const { area, budget, keys } = room(1000);
  for (const key of ['call.a.1', 'call.a.1.log.0', 'call.a.12', 'call.a', 'calls']) area.setItem(key, '{}');
  budget.sweep('call.', ['a.1']);
  expect(keys()).toEqual(['call.a.1', 'call.a.1.log.0', 'calls']);
});

test('what an earlier page load has stored takes room too', () => {
  const { area, budget } = room(100);
  area.setItem('call.1', JSON.stringify(x(60)));
  expect(budget.read('1', 'call.1', anything)).toBe(x(60));
  expect(budget.put('2', 'call.2', x(60))).toBe(false);
  budget.erase('1');
  expect(budget.put('2', 'call.2', x(60))).toBe(true);
});

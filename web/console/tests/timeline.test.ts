// @vitest-environment jsdom
import type { BelayClient, WireEvent } from 'belay-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { summaryOf, Timeline } from '../src/timeline';

const KEY = 'belay_console_timeline';

/** A timeline, and what tells it that something crossed the wire. */
function followed(): { timeline: Timeline; tell: (text: string, kind?: WireEvent['kind']) => void } {
  let listener: (event: WireEvent) => void = () => undefined;
  const timeline = new Timeline();
  timeline.follow({ onwire: (each: typeof listener) => ((listener = each), () => undefined) } as unknown as BelayClient);
  const tell = (text: string, kind: WireEvent['kind'] = 'received') =>
    listener({ at: 1, kind, message: { jsonrpc: '2.0', id: 1, result: { text } } });
  return { timeline, tell };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  sessionStorage.clear();
});

test('is kept across a reload', () => {
  const { tell } = followed();
  tell('first');
  vi.runAllTimers();
  expect(new Timeline().entries().map(({ message }) => message)).toContainEqual(
    expect.objectContaining({ result: { text: 'first' } }),
  );
});

test('what was forgotten is not stored again, neither by a timer nor by leaving the page', () => {
  const { timeline, tell } = followed();
  tell('stored');
  vi.runAllTimers();
  expect(sessionStorage.getItem(KEY)).toContain('stored');
  tell('pending');
  timeline.forgetStored();
  tell('late');
  expect(sessionStorage.getItem(KEY)).toBeNull();
  vi.runAllTimers();
  window.dispatchEvent(new Event('pagehide'));
  expect(sessionStorage.getItem(KEY)).toBeNull();
  expect(timeline.entries()).toHaveLength(3);

  tell('of the next session', 'sent');
  vi.runAllTimers();
  const stored = sessionStorage.getItem(KEY);
  expect(stored).toContain('next session');
  expect(stored).not.toMatch(/stored|pending|late/);
});

test('a gap is told in a sentence', () => {
  const told = (data: unknown, logger = 'resumability') =>
    summaryOf({ method: 'notifications/message', params: { level: 'warning', logger, data } }, undefined);
  expect(told({ missed: 1740, from: 262, to: 2001 })).toBe(
    'warning Of what was missed, 1,740 messages are no longer kept by the server',
  );
  expect(told({ missed: 1, from: 7, to: 7 })).toContain('1 message is no longer kept');
  expect(told({ missed: 0, from: 1, to: 1, restarted: true })).toContain('what was missed is not known');
  expect(told({ missed: 3 }, 'sync')).toBe('warning {"missed":3}');
  expect(told('resumability')).toBe('warning resumability');
});

// The transport on streams whose bytes a test decides.
import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { afterEach, expect, test, vi } from 'vitest';
import { Backoff } from '../src/backoff.js';
import { Position } from '../src/position.js';
import { ResumableTransport, type TransportHost } from '../src/transport.js';

const url = new URL('http://server.test/mcp');
const initialize = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'scripted', version: '1' } };
const ignored = (): void => {};
const patient = { timeout: 20_000, interval: 5 };

let transport: ResumableTransport | undefined;
afterEach(async () => {
  await transport?.close();
  vi.useRealTimers();
});

/** A body that is written by hand, in the answer to a request. */
class Stream {
  #out!: ReadableStreamDefaultController<Uint8Array>;
  readonly answer = new Response(new ReadableStream<Uint8Array>({ start: out => void (this.#out = out) }), {
    headers: { 'content-type': 'text/event-stream' },
  });
  say(text: string): void {
    this.#out.enqueue(new TextEncoder().encode(text));
  }
  end(): void {
    this.#out.close();
  }
  break(): void {
    this.#out.error(new TypeError('reset'));
  }
}

/** A transport whose requests are answered by the test. */
async function open(answer: (init: RequestInit) => Response, position = new Position()): Promise<ResumableTransport> {
  const host = {
    adopt: () => {
      throw new Error('there is no call');
    },
    track: () => undefined,
    begun: ignored,
    saveStandalone: ignored,
    gone: ignored,
    unauthorized: ignored,
    troubled: ignored,
    healthy: ignored,
    recovered: ignored,
    notified: ignored,
    wire: ignored,
  } satisfies TransportHost;
  transport = new ResumableTransport(
    {
      url,
      session: { id: 's', serverUrl: url.href, initialize },
      standalone: () => position,
      inner: { fetch: async (_, init = {}) => answer(init) },
      backoff: new Backoff(100, 30_000),
      silenceTimeout: 0,
      idPrefix: 'p',
    },
    host,
  );
  await transport.start();
  await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return transport;
}

/** The standalone stream's connections, one after the other, on a clock that the test moves. */
async function connections(answer: (stream: Stream) => Response = ({ answer }) => answer) {
  vi.useFakeTimers();
  const all: Stream[] = [];
  await open(() => {
    const stream = new Stream();
    all.push(stream);
    return answer(stream);
  });
  const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
  await pass(1);
  expect(all.length).toBe(1);
  return { all, pass };
}

const priming = (retry: number): string => `id: first\nretry: ${retry}\ndata:\n\n`;
const message = (id: string, size = 1): string =>
  `id: ${id}\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${'x'.repeat(size)}"}}\n\n`;

test('a connection that breaks is made anew by the page’s own clock, not by the server’s', async () => {
  const { all, pass } = await connections();
  all[0]!.say(priming(60_000) + message('a'));
  await pass(1);
  all[0]!.break();
  await pass(150);
  expect(all.length).toBe(2);
});

test('connections that break before they bring anything are made more and more seldom', async () => {
  const { all, pass } = await connections();
  let broken = 0;
  for (let step = 0; step < 10_000; step += 10) {
    while (broken < all.length) {
      all[broken]!.say(priming(20));
      all[broken++]!.break();
    }
    await pass(10);
  }
  expect(all.length).toBeGreaterThanOrEqual(6);
  expect(all.length).toBeLessThanOrEqual(10);
});

for (const [how, leave] of [
  ['ends', (stream: Stream) => stream.end()],
  ['breaks', (stream: Stream) => stream.break()],
] as const)
  test(`a server that says when to come back before its connection ${how} is taken at its word`, async () => {
    const { all, pass } = await connections();
    all[0]!.say(priming(20) + message('a', 10_000) + message('b'));
    all[0]!.say('retry: 60');
    all[0]!.say('000\n\n');
    await pass(1);
    leave(all[0]!);
    await pass(59_000);
    expect(all.length).toBe(1);
    await pass(9000);
    expect(all.length).toBe(2);
  });

test('a server that ends its connections to be asked from time to time is asked as often as it wants', async () => {
  const { all, pass } = await connections();
  for (let round = 1; round <= 5; ++round) {
    all.at(-1)!.say(priming(4000));
    await pass(1);
    all.at(-1)!.end();
    await pass(3900);
    expect(all.length).toBe(round);
    await pass(700);
    expect(all.length).toBe(round + 1);
  }
});

test('a server that wants to be asked at once is not asked without a pause', async () => {
  const { all, pass } = await connections();
  let ended = 0;
  for (let step = 0; step < 1000; step += 10) {
    while (ended < all.length) {
      all[ended]!.say(priming(0));
      all[ended++]!.end();
    }
    await pass(10);
  }
  expect(all.length).toBeLessThanOrEqual(21);
});

test('a wait that no page lives to see is not waited for, nor taken for none', async () => {
  const { all, pass } = await connections();
  all[0]!.say(priming(20) + message('a') + 'retry: 99999999999999\n\n');
  await pass(1);
  all[0]!.end();
  await pass(9 * 60_000);
  expect(all.length).toBe(1);
  await pass(3 * 60_000);
  expect(all.length).toBe(2);
});

for (const [what, value] of [
  ['seconds', () => '30'],
  ['a date', () => new Date(Date.now() + 30_500).toUTCString()],
] as const)
  for (const status of [429, 502, 503])
    test(`Retry-After in ${what} is waited for with status ${status}`, async () => {
      let tries = 0;
      const { all, pass } = await connections(({ answer }) =>
        tries++ === 0 ? new Response('', { status, headers: { 'retry-after': value() } }) : answer,
      );
      await pass(28_000);
      expect(all.length).toBe(1);
      await pass(8000);
      expect(all.length).toBe(2);
    });

test('a position that the server does not know does not keep the page from listening', async () => {
  const cursors: (string | null)[] = [];
  await open(({ method, headers }) => {
    if (method !== 'GET') return new Response(null, { status: 202 });
    cursors.push(new Headers(headers).get('last-event-id'));
    return cursors.length === 1 ? new Response('', { status: 400 }) : new Stream().answer;
  }, new Position({ cursor: 'of another time', handled: ['x'] }));
  await vi.waitFor(() => expect(cursors).toEqual(['of another time', null]), patient);
});

test('an event without a message is noted beside one of another stream', async () => {
  const standalone = new Stream();
  const request = new Stream();
  const position = new Position();
  const received: JSONRPCMessage[] = [];
  let asked = 0;
  const transport = await open(({ method }) => {
    ++asked;
    return method === 'GET' ? standalone.answer : request.answer;
  }, position);
  transport.onmessage = message => void received.push(message);
  await transport.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  await vi.waitFor(() => expect(asked).toBe(2), patient);
  // Both orders, each pair in one turn.
  for (let n = 1; n <= 20; ++n) {
    const blank = (): void => standalone.say(`id: blank-${n}\ndata:\n\n`);
    const message = (): void =>
      request.say(`id: r-${n}\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${n}}}\n\n`);
    if (n % 2 === 0) {
      blank();
      message();
    } else {
      message();
      blank();
    }
    await vi.waitFor(() => {
      expect(received.length).toBe(n);
      expect(position.stored().cursor).toBe(`blank-${n}`);
    }, patient);
  }
});

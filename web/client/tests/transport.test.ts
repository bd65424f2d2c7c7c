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
afterEach(() => transport?.close());

/** A body that is written by hand, in the answer to a request. */
class Stream {
  #out!: ReadableStreamDefaultController<Uint8Array>;
  readonly answer = new Response(new ReadableStream<Uint8Array>({ start: out => void (this.#out = out) }), {
    headers: { 'content-type': 'text/event-stream' },
  });
  say(text: string): void {
    this.#out.enqueue(new TextEncoder().encode(text));
  }
}

test('an event without a message is noted beside one of another stream', async () => {
  const standalone = new Stream();
  const request = new Stream();
  const position = new Position();
  const received: JSONRPCMessage[] = [];
  let asked = 0;
  const host = {
    adopt: () => {
      throw new Error('there is no call');
    },
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
      inner: {
        fetch: async (_, init) => {
          ++asked;
          return init?.method === 'GET' ? standalone.answer : request.answer;
        },
      },
      backoff: new Backoff(10, 10),
      silenceTimeout: 0,
      idPrefix: 'p',
    },
    host,
  );
  transport.onmessage = message => void received.push(message);
  await transport.start();
  await transport.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
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

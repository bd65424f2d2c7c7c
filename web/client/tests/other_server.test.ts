// AS-58: a server that is not Belay. The official SDK's, with an event store, as its documentation has it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server as McpServer } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport, type EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, expect, test } from 'vitest';
import { lines, Page, Tab, textOf, until } from './page.js';

/** The texts of what was stored, of all sessions. */
let stored: string[] = [];

class Events implements EventStore {
  readonly #events: { id: string; stream: string; message: never }[] = [];
  async storeEvent(stream: string, message: unknown): Promise<string> {
    const id = `${stream}/${this.#events.length}`;
    this.#events.push({ id, stream, message: message as never });
    stored.push(JSON.stringify(message));
    return id;
  }
  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#events.find(event => event.id === id)?.stream;
  }
  async replayEventsAfter(id: string, { send }: { send: (id: string, message: never) => Promise<void> }): Promise<string> {
    const from = this.#events.findIndex(event => event.id === id);
    const stream = this.#events[from]!.stream;
    for (const event of this.#events.slice(from + 1)) if (event.stream === stream) await send(event.id, event.message);
    return stream;
  }
}

let http: Server;
let runs = 0;

async function start(): Promise<URL> {
  runs = 0;
  stored = [];
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  http = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'] as string | undefined;
    let transport = id === undefined ? undefined : sessions.get(id);
    if (id !== undefined && !transport) return void response.writeHead(404).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 50,
        onsessioninitialized: session => void sessions.set(session, transport!),
      });
      await countingServer().connect(transport as never);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
}

function countingServer(): McpServer {
  const server = new McpServer({ name: 'other', version: '1' }, { capabilities: { tools: {}, logging: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'count', inputSchema: { type: 'object' } }] }));
  server.setRequestHandler(CallToolRequestSchema, async (_, { sendNotification, signal }) => {
    ++runs;
    for (let at = 1; at <= 15 && !signal.aborted; ++at) {
      await sendNotification({ method: 'notifications/message', params: { level: 'info', data: at } });
      await new Promise(resolve => setTimeout(resolve, 100));
    }
    return { content: [{ type: 'text', text: 'counted' }] };
  });
  return server;
}

afterEach(async () => {
  http.closeAllConnections();
  http.close();
});

const all = Array.from({ length: 15 }, (_, at) => at + 1);

for (const [scenario, last] of [
  ['AS-01: a reload in the middle of a call', '"data":6'],
  ['AS-02: the result comes while nobody listens', 'counted'],
] as const) {
  test(scenario, async () => {
    const url = await start();
    const tab = new Tab();
    const first = new Page(url, tab);
    await first.client.start();
    const begun = first.client.callTool('count');
    await until(begun, () => begun.log.length >= 3);
    first.die();
    await expect.poll(() => stored.some(text => text.includes(last)), { timeout: 20_000 }).toBe(true);
    const second = new Page(undefined, tab);
    await second.client.start();
    const call = second.client.calls()[0]!;
    expect(textOf(await call.result)).toBe('counted');
    expect(lines(call)).toEqual(all);
    expect(runs).toBe(1);
    second.die();
  });
}

test('a call that may not have arrived is not made twice', async () => {
  const url = await start();
  const tab = new Tab();
  const first = new Page(url, tab);
  await first.client.start();
  first.client.callTool('count');
  first.die();
  const second = new Page(undefined, tab);
  await second.client.start();
  const call = second.client.calls()[0]!;
  await expect(call.result).rejects.toMatchObject({ state: 'lost', message: expect.stringContaining('whether the tool ran is not known') });
  second.die();
});

test('a cancelled call ends although the server says nothing more', async () => {
  const page = new Page(await start(), new Tab());
  await page.client.start();
  const call = page.client.callTool('count');
  await until(call, () => call.log.length >= 2);
  call.cancel();
  await expect(call.result).rejects.toMatchObject({ state: 'cancelled' });
  page.die();
});

// A server that wants a token, in front of a real one. The login itself is the provider's.
import { createServer, type IncomingMessage, type Server as HttpServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { OAuthClientProvider } from '@modelcontextprotocol/client';
import { afterEach, expect, test } from 'vitest';
import { openPage, startServer } from './fixture.js';
import { Tab, until } from './page.js';

let gate: HttpServer | undefined;
afterEach(() => {
  gate?.closeAllConnections();
  gate?.close();
});

/** Forwards what comes with the token, and refuses the rest. */
async function startGate(accepts: () => string): Promise<{ url: URL }> {
  const server = await startServer();
  gate = createServer(async (request, response) => {
    if (request.url !== '/mcp') return void response.writeHead(404).end();
    if (request.headers.authorization !== `Bearer ${accepts()}`)
      return void response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers))
      if (!['host', 'connection', 'content-length', 'transfer-encoding', 'authorization'].includes(name))
        headers.set(name, String(value));
    const leaving = new AbortController();
    response.on('close', () => leaving.abort());
    try {
      const answer = await fetch(server.url, {
        method: request.method,
        headers,
        body: request.method === 'POST' ? await textOf(request) : undefined,
        signal: leaving.signal,
      });
      response.writeHead(answer.status, Object.fromEntries([...answer.headers].filter(([name]) => name !== 'content-encoding')));
      response.flushHeaders();
      for await (const chunk of (answer.body ?? []) as unknown as AsyncIterable<Uint8Array>) response.write(chunk);
      response.end();
    } catch {
      response.destroy();
    }
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  return { url: new URL(`http://127.0.0.1:${(gate.address() as AddressInfo).port}/mcp`) };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

class Provider implements OAuthClientProvider {
  redirects = 0;
  constructor(public token: string | undefined) {}
  readonly redirectUrl = 'http://page.test/callback';
  readonly clientMetadata = { redirect_uris: [this.redirectUrl] };
  clientInformation() {
    return { client_id: 'page' };
  }
  tokens() {
    return this.token === undefined ? undefined : { access_token: this.token, token_type: 'Bearer' };
  }
  saveTokens(): void {}
  redirectToAuthorization(): void {
    ++this.redirects;
  }
  saveCodeVerifier(): void {}
  codeVerifier(): string {
    return 'verifier';
  }
}

test('a token goes with every request', async () => {
  const page = openPage(await startGate(() => 'good'), new Tab(), { authProvider: { token: async () => 'good' } });
  await page.client.start();
  expect(page.client.status.state).toBe('connected');
  await expect(page.client.callTool('echo', { message: 'x' }).result).resolves.toBeDefined();
});

test('connect leads to the login', async () => {
  const provider = new Provider(undefined);
  const page = openPage(await startGate(() => 'good'), new Tab(), { authProvider: provider });
  await expect(page.client.connect()).rejects.toThrow();
  expect(page.client.status).toMatchObject({ state: 'authorizing', reason: 'unauthorized' });
  expect(provider.redirects).toBe(1);
  provider.token = 'good';
  await page.client.connect();
  expect(page.client.status.state).toBe('connected');
});

test('a reload uses the stored token, and without one leads nowhere', async () => {
  const server = await startGate(() => 'good');
  const tab = new Tab();
  const provider = new Provider('good');
  const first = openPage(server, tab, { authProvider: provider });
  await first.client.start();
  first.die();
  const second = openPage(server, tab, { authProvider: provider });
  expect(await second.client.reconnect()).toBe(true);
  second.die();
  provider.token = undefined;
  const third = openPage(server, tab, { authProvider: provider });
  expect(await third.client.reconnect()).toBe(false);
  expect(third.client.hasSession).toBe(false);
  expect(third.requests).toEqual([]);
  expect(provider.redirects).toBe(0);
});

test('a token that is no longer good is told, and leads nowhere by itself', async () => {
  let good = 'good';
  const provider = new Provider('good');
  const page = openPage(await startGate(() => good), new Tab(), { authProvider: provider });
  await page.client.start();
  good = 'another';
  await expect(page.client.client.ping()).rejects.toThrow();
  await until(page.client, () => page.client.status.state === 'authorizing');
  expect(provider.redirects).toBe(0);
  expect(page.client.hasSession).toBe(true);
  provider.token = 'another';
  expect(await page.client.reconnect()).toBe(true);
  expect(page.client.status.state).toBe('connected');
});

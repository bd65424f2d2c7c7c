// What is asked of a client at the wrong moment: twice, while something else is under way, or after it was closed.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Ownership } from '../src/ownership.js';
import { openPage, startServer, stopServer, TOOL, utility } from './fixture.js';
import { Page, Tab, until } from './page.js';

/** Locks as the tabs of one browser share them. */
class Locks {
  readonly #queues = new Map<string, (() => void)[]>();
  async request(name: string, options: LockOptions, work: () => Promise<void>): Promise<void> {
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    const turn = new Promise<void>((resolve, reject) => {
      queue.push(resolve);
      options.signal?.addEventListener('abort', () => {
        if (queue[0] === resolve) return;
        queue.splice(queue.indexOf(resolve), 1);
        reject(new DOMException('no longer wanted', 'AbortError'));
      });
    });
    if (queue.length === 1) queue[0]!();
    await turn;
    await work();
    queue.shift();
    queue[0]?.();
  }
}

beforeEach(() => void vi.stubGlobal('navigator', { locks: new Locks() }));
afterEach(() => void vi.unstubAllGlobals());

const handshakes = (page: Page): number => page.requests.filter(({ body }) => body?.includes('"initialize"')).length;

/** A login that is found when the test says so. */
function slowLogin() {
  let find = (): void => {};
  const found = new Promise<string>(resolve => (find = () => resolve('good')));
  return { provider: { token: () => found }, find };
}

async function storedSession(server: { url: URL }, tab: Tab, persistence: 'tab' | 'browser' = 'tab'): Promise<string> {
  const page = openPage(server, tab, { persistence });
  await page.client.start();
  await page.client.close();
  page.die();
  return page.client.sessionId!;
}

test('two reconnects at once are one', async () => {
  const server = await startServer();
  const tab = new Tab();
  await storedSession(server, tab);
  const login = slowLogin();
  const page = openPage(server, tab, { authProvider: login.provider });
  let reloaded = 0;
  page.client.onwire(({ kind }) => void (kind === 'reloaded' && ++reloaded));
  const both = Promise.all([page.client.reconnect(), page.client.reconnect()]);
  login.find();
  expect(await both).toEqual([true, true]);
  expect(reloaded).toBe(1);
});

test('a page that is closed while its login is looked up stays closed', async () => {
  const server = await startServer();
  const tab = new Tab();
  await storedSession(server, tab);
  const login = slowLogin();
  const page = openPage(server, tab, { authProvider: login.provider });
  const isBack = page.client.reconnect();
  await page.client.close();
  login.find();
  expect(await isBack).toBe(false);
  expect(page.client.status.state).toBe('disconnected');
  expect(page.requests).toEqual([]);
});

for (const [when, reason] of [['has just begun to', undefined], ['waits to', 'unreachable']])
  test(`a page that is closed when it ${when} come back begins no session in place of its own`, async () => {
    const server = await startServer();
    const tab = new Tab();
    const id = await storedSession(server, tab);
    const page = openPage(server, tab);
    page.isOffline = true;
    const started = page.client.start();
    await until(page.client, () => page.client.status.reason === reason);
    await page.client.close();
    page.isOffline = false;
    await started;
    expect(page.client.status.state).toBe('disconnected');
    expect(page.client.sessionId).toBe(id);
    expect(page.requests).toEqual([]);
  });

test('a page that was closed says nothing of what it waited for', async () => {
  const page = openPage(await startServer());
  page.isOffline = true;
  const started = page.client.start();
  await until(page.client, () => page.client.status.reason === 'unreachable');
  await page.client.close();
  await started;
  const { state, reason, message, retryAt } = page.client.status;
  expect({ state, reason, message, retryAt }).toEqual({ state: 'disconnected' });
});

test('who connects at once after closing is connected', async () => {
  const server = await startServer();
  const page = openPage(server);
  for (const isWhole of [false, true]) {
    const first = page.client.connect();
    if (isWhole) await first;
    void page.client.close();
    await page.client.connect();
    expect(page.client.status.state).toBe('connected');
    await expect(page.client.callTool('echo', { message: 'x' }).result).resolves.toBeDefined();
    await first;
    await page.client.close();
  }
});

test('a page that is closed while it waits for its session can come back to it', async () => {
  const server = await startServer();
  const tab = new Tab();
  const id = await storedSession(server, tab);
  const former = new Ownership(`mcp_${id}`, () => {});
  expect(await former.acquire()).toBe(true);
  const page = openPage(server, tab);
  const abandoned = page.client.reconnect();
  expect(page.client.status.state).toBe('reconnecting');
  await page.client.close();
  expect(await abandoned).toBe(false);
  former.release();
  expect(await page.client.reconnect()).toBe(true);
  expect(page.client.sessionId).toBe(id);
});


test('a session that is taken back and has expired is replaced once', async () => {
  vi.stubGlobal('document', { addEventListener() {}, removeEventListener() {} });
  let server = await startServer();
  const tab = new Tab();
  const options = { persistence: 'browser' } as const;
  const page = openPage({ get url() { return server.url; } }, tab, options);
  await page.client.start();
  const other = openPage(server, tab, options);
  await other.client.start();
  await until(page.client, () => page.client.status.reason === 'taken-over');
  await other.client.close();
  await stopServer(server);
  server = await startServer();
  const before = handshakes(page);
  await page.client.connect();
  expect(page.client.status).toMatchObject({ state: 'connected', reason: 'session-expired' });
  expect(handshakes(page)).toBe(before + 1);
});

test('who closes and connects on hearing that a call is lost is connected', async () => {
  let server = await startServer();
  const page = openPage({ get url() { return server.url; } });
  await page.client.start();
  const call = page.client.callTool(TOOL, utility(60, 100).args);
  await until(call, () => call.log.length >= 2);
  let again: Promise<void> | undefined;
  call.subscribe(() => {
    if (again || call.state !== 'lost') return;
    void page.client.close();
    again = page.client.connect();
  });
  page.isOffline = true;
  await stopServer(server);
  server = await startServer();
  page.isOffline = false;
  await until(call, () => again !== undefined);
  await again;
  expect(page.client.status).toMatchObject({ state: 'connected', reason: undefined });
  await expect(page.client.callTool('echo', { message: 'x' }).result).resolves.toBeDefined();
  expect(handshakes(page)).toBe(2);
});

test('a login that cannot be looked up is told, and costs nothing', async () => {
  const server = await startServer();
  const tab = new Tab();
  const id = await storedSession(server, tab);
  const page = openPage(server, tab, { authProvider: { token: () => Promise.reject(new Error('no keychain')) } });
  await expect(page.client.reconnect()).rejects.toThrow('no keychain');
  expect(page.client.status.state).toBe('disconnected');
  expect(page.client.sessionId).toBe(id);
});

test('whatever is done in a page that was taken over, the other one’s session and calls stay stored', async () => {
  vi.stubGlobal('document', { addEventListener() {}, removeEventListener() {} });
  const server = await startServer();
  const tab = new Tab();
  const options = { persistence: 'browser' } as const;
  const page = openPage(server, tab, options);
  await page.client.start();
  const old = page.client.callTool('echo', { message: 'old' });
  await old.result;
  const other = openPage(server, tab, options);
  await other.client.start();
  await until(page.client, () => page.client.status.reason === 'taken-over');
  await other.client.callTool('echo', { message: 'new' }).result;

  await expect(page.client.callTool('echo').result).rejects.toThrow('Connect first');
  page.client.forget(old);
  await page.client.disconnect();
  expect(page.client.calls()).toEqual([]);
  const next = openPage(server, tab, options);
  expect(next.client.sessionId).toBe(other.client.sessionId);
  expect(next.client.calls().map(call => call.arguments)).toEqual([{ message: 'old' }, { message: 'new' }]);
  await page.client.connect();
  expect(page.client.sessionId).toBe(other.client.sessionId);
  await page.client.callTool('echo', { message: 'back' }).result;
  expect(openPage(server, tab, options).client.calls().length).toBe(3);
});

import { expect, test } from 'vitest';
import { BelayClient } from '../src/index.js';
import { openPage, startServer, TOOL, utility } from './fixture.js';
import { Tab, until } from './page.js';

const keys = (tab: Tab): string[] => [...Array(tab.storage.tab.length).keys()].map(at => tab.storage.tab.key(at)!);

test('AS-13: two tabs have two sessions', async () => {
  const server = await startServer();
  const pages = [openPage(server), openPage(server)];
  for (const page of pages) await page.client.start();
  expect(pages[0]!.client.sessionId).not.toBe(pages[1]!.client.sessionId);
  expect((await server.metrics())['belay_sessions']).toBe(2);
});

test('AS-27: disconnect ends and forgets, and a reload does not undo it', async () => {
  const server = await startServer();
  const tab = new Tab();
  const page = openPage(server, tab);
  await page.client.start();
  const call = page.client.callTool(TOOL, utility(60, 100).args);
  await until(call, () => call.log.length > 1);
  await page.client.callTool('echo', { message: 'x' }).result;
  await page.client.disconnect();
  expect(page.client.status.state).toBe('disconnected');
  expect(call.state).toBe('lost');
  expect(page.requests.at(-1)?.method).toBe('DELETE');
  expect(keys(tab)).toEqual(['mcp_disconnected']);
  expect(tab.storage.shared.getItem('mcp_server_url')).toBe('http://server.test/mcp');
  await server.until(metrics => metrics['belay_sessions'] === 0);

  const later = openPage(server, tab);
  await later.client.start();
  expect(later.client.status.state).toBe('disconnected');
  expect(later.requests).toEqual([]);
  await later.client.connect();
  expect(later.client.status.state).toBe('connected');
});

test('close keeps everything, and sends nothing', async () => {
  const server = await startServer();
  const tab = new Tab();
  const page = openPage(server, tab);
  await page.client.start();
  const id = page.client.sessionId;
  await page.client.close();
  expect(page.requests.some(({ method }) => method === 'DELETE')).toBe(false);
  expect(await page.client.reconnect()).toBe(true);
  expect(page.client.sessionId).toBe(id);
  expect(page.client.status).toMatchObject({ state: 'connected', wasReconnected: true });
});

test('the keys are those that pages are known to use', async () => {
  const server = await startServer();
  const tab = new Tab();
  const page = openPage(server, tab);
  await page.client.start();
  await page.client.callTool('echo', { message: 'x' }).result;
  expect(tab.storage.tab.getItem('mcp_session_id')).toBe(page.client.sessionId);
  expect(tab.storage.shared.getItem('mcp_server_url')).toBe('http://server.test/mcp');
  await until(page.client, () => tab.storage.tab.getItem('mcp_last_event_id') !== null || page.client.status.state !== 'connected');
  const [call] = page.client.calls();
  expect(keys(tab)).toContain(`mcp_call.${call!.id}`);
});

test('an address that older pages have stored is used', () => {
  const tab = new Tab();
  tab.storage.shared.setItem('mcp_last_server_url', 'http://server.test/old');
  expect(new BelayClient({ storage: tab.storage }).serverUrl).toBe('http://server.test/old');
});

test('browser mode keeps the session for a tab that is opened later', async () => {
  const server = await startServer();
  const tab = new Tab();
  const first = openPage(server, tab, { persistence: 'browser' });
  await first.client.start();
  first.die();
  const laterTab = new Tab();
  for (let at = 0; at < tab.storage.shared.length; ++at) {
    const key = tab.storage.shared.key(at)!;
    laterTab.storage.shared.setItem(key, tab.storage.shared.getItem(key)!);
  }
  const second = openPage(server, laterTab, { persistence: 'browser' });
  expect(second.client.hasSession).toBe(true);
  await second.client.start();
  expect(second.client.sessionId).toBe(first.client.sessionId);
});

test('a session of another server is left alone', async () => {
  const server = await startServer();
  const tab = new Tab();
  const first = openPage(server, tab);
  await first.client.start();
  first.die();
  const other = openPage(server, tab, { serverUrl: 'http://server.test/hello/mcp' });
  expect(other.client.hasSession).toBe(false);
});

test('what was stored by something else is no reason to fail', () => {
  const tab = new Tab();
  tab.storage.tab.setItem('mcp_session_id', 'x');
  tab.storage.tab.setItem('mcp_session', '{broken');
  tab.storage.tab.setItem('mcp_calls', '["a","b"]');
  tab.storage.tab.setItem('mcp_call.a', '17');
  const client = new BelayClient({ serverUrl: 'http://server.test/mcp', storage: tab.storage });
  expect(client.hasSession).toBe(false);
  expect(client.calls()).toEqual([]);
});

test('a call without a connection says so', async () => {
  const client = new BelayClient({ serverUrl: 'http://server.test/mcp', storage: new Tab().storage });
  await expect(client.callTool('echo').result).rejects.toMatchObject({ state: 'lost', message: expect.stringContaining('Connect first') });
});

test('a call without a session does not outlive its page, and says so', async () => {
  const server = await startServer();
  const tab = new Tab();
  const options = { serverUrl: 'http://server.test/hello/mcp' };
  const first = openPage(server, tab, options);
  await first.client.start();
  const begun = first.client.callTool('countdown', { from: 30 });
  await until(begun, () => begun.progress !== undefined);
  first.die();
  const second = openPage(server, tab, options);
  const call = second.client.calls()[0]!;
  expect(call).toMatchObject({ id: begun.id, state: 'running' });
  await second.client.start();
  expect(second.client.status.state).toBe('connected');
  await expect(call.result).rejects.toMatchObject({ state: 'lost' });
});

test('a call may be made while the connection is being made', async () => {
  const server = await startServer();
  const page = openPage(server);
  const started = page.client.start();
  await until(page.client, () => page.client.status.state === 'connecting');
  const call = page.client.callTool('echo', { message: 'early' });
  const cancelled = page.client.callTool('echo', { message: 'never' });
  cancelled.cancel();
  await expect(cancelled.result).rejects.toMatchObject({ state: 'cancelled' });
  await started;
  await expect(call.result).resolves.toBeDefined();
  expect((await server.metrics())['belay_calls_started_total']).toBe(1);
});

test('a call that is cancelled without a network is not sent when there is one', async () => {
  const server = await startServer();
  const page = openPage(server);
  await page.client.start();
  page.isOffline = true;
  const call = page.client.callTool('echo', { message: 'never' });
  await until(page.client, () => page.client.status.state === 'reconnecting');
  call.cancel();
  page.isOffline = false;
  await expect(call.result).rejects.toMatchObject({ state: 'cancelled' });
  expect((await server.metrics())['belay_calls_started_total']).toBe(0);
});

test('an aborted signal cancels', async () => {
  const server = await startServer();
  const page = openPage(server);
  await page.client.start();
  const controller = new AbortController();
  const call = page.client.callTool(TOOL, utility(60, 100).args, { signal: controller.signal });
  await until(call, () => call.log.length > 1);
  controller.abort();
  await expect(call.result).rejects.toMatchObject({ state: 'cancelled' });
  await expect(page.client.callTool(TOOL, {}, { signal: controller.signal }).result).rejects.toMatchObject({ state: 'cancelled' });
});

// A network that comes and goes under a page that stays.
import { expect, test } from 'vitest';
import { openPage, saidBy, startServer, stopServer, TOOL, utility } from './fixture.js';
import { lines, Tab, textOf, until } from './page.js';
import { Proxy } from '../../../tests/clients/lib/proxy.mjs';

test('a network cut costs nothing, and what was missed is counted', async () => {
  const server = await startServer();
  const page = openPage(server);
  await page.client.start();
  const u = utility(2, 100);
  const call = page.client.callTool(TOOL, u.args);
  await until(call, () => call.log.length >= 3);
  page.isOffline = true;
  await until(page.client, () => page.client.status.state === 'reconnecting');
  expect(page.client.status).toMatchObject({ reason: 'unreachable', retryAt: expect.any(Number) });
  await saidBy(server, 8);
  page.isOffline = false;
  await until(page.client, () => page.client.status.state === 'connected' && page.client.status.recovered > 0);
  await call.result;
  expect(lines(call)).toEqual(u.lines);
  expect(page.client.status).toMatchObject({ state: 'connected', wasReconnected: true });
  expect(page.client.status.recovered).toBe(call.log.filter(line => line.recovered).length);
  expect(page.states).toEqual(['connecting', 'connected', 'reconnecting', 'connected']);
});

test('the plug can be pulled, and put back in at once', async () => {
  const server = await startServer();
  const page = openPage(server);
  await page.client.start();
  const u = utility(1, 100);
  const call = page.client.callTool(TOOL, u.args);
  await until(call, () => call.log.length >= 3);
  page.client.pullPlug(60_000);
  await until(page.client, () => page.client.status.state === 'reconnecting');
  await saidBy(server, 4);
  page.client.retryNow();
  await call.result;
  expect(lines(call)).toEqual(u.lines);
});

test('AS-10: cut at random bytes, every message arrives once and in order', async () => {
  const server = await startServer(['--retry', '20ms']);
  let cuts = 0;
  const proxy = await Proxy.start(server.url, () => (cuts++ < 25 ? Math.floor(Math.random() * 1200) : Infinity));
  try {
    const page = openPage(proxy, new Tab(), { retryDelay: 10 });
    await page.client.start();
    const u = utility(4, 100);
    const call = page.client.callTool(TOOL, u.args);
    await call.result;
    expect(lines(call)).toEqual(u.lines);
    expect(proxy.cuts).toBeGreaterThan(5);
    const metrics = await server.metrics();
    // Cut off before the first event, it does not know whether its call arrived, and sends it again with its key.
    expect(metrics['belay_calls_started_total']! - metrics['belay_calls_repeated_total']!).toBe(1);
  } finally {
    await proxy.close();
  }
});

test('waits for a server that is not there yet', async () => {
  const server = await startServer();
  const page = openPage(server);
  page.isOffline = true;
  const started = page.client.start();
  await until(page.client, () => page.client.status.reason === 'unreachable');
  expect(page.client.status.state).toBe('connecting');
  expect(page.client.status.message).toContain('server.test');
  page.isOffline = false;
  await started;
  expect(page.client.status).toMatchObject({ state: 'connected', wasReconnected: false });
});

test('AS-19: a server that was restarted gets a fresh session, and the calls say that they are lost', async () => {
  let server = await startServer();
  const tab = new Tab();
  const page = openPage({ get url() { return server.url; } }, tab);
  await page.client.start();
  const before = page.client.sessionId;
  const done = page.client.callTool('echo', { message: 'kept' });
  await done.result;
  const call = page.client.callTool(TOOL, utility(60, 100).args);
  await until(call, () => call.log.length >= 2);
  page.isOffline = true;
  await stopServer(server);
  server = await startServer();
  page.isOffline = false;
  await expect(call.result).rejects.toMatchObject({ state: 'lost', message: expect.stringContaining('no longer knows the session') });
  await until(page.client, () => page.client.status.state === 'connected');
  expect(page.client.status).toMatchObject({ reason: 'session-expired', wasReconnected: false });
  expect(page.client.sessionId).not.toBe(before);
  expect(textOf(done.value!)).toContain('kept');
  await expect(page.client.callTool('echo', { message: 'again' }).result).resolves.toBeDefined();
});

test('AS-17: a page that returns after its session has expired carries on with a new one', async () => {
  const server = await startServer(['--session-idle-timeout', '300ms', '--reaper-interval', '50ms']);
  const tab = new Tab();
  const first = openPage(server, tab);
  await first.client.start();
  first.die();
  await server.until(metrics => metrics['belay_sessions'] === 0);
  const second = openPage(server, tab);
  const messages: (string | undefined)[] = [];
  second.client.subscribe(() => messages.push(second.client.status.message));
  await second.client.start();
  expect(messages).toContain('Session expired, reconnecting…');
  expect(second.client.status).toMatchObject({ state: 'connected', reason: 'session-expired' });
  expect(second.client.sessionId).not.toBe(first.client.sessionId);
  expect((await second.client.client.listTools()).tools.length).toBeGreaterThan(5);
});

test('a server that refuses is an error, not a wait', async () => {
  const server = await startServer();
  const page = openPage({ get url() { return new URL('/nothing/here', server.url); } });
  page.route = url => new URL('/nothing/here', new URL(url.pathname, server.url));
  await expect(page.client.start()).rejects.toThrow();
  expect(page.client.status).toMatchObject({ state: 'error', reason: 'refused' });
});

test('ten calls, more than a page has connections for', async () => {
  const server = await startServer(['--streams-open', '3', '--retry', '50ms']);
  const page = openPage(server);
  await page.client.start();
  const kinds = Array.from({ length: 10 }, (_, at) => utility(1, 100, `call ${at}`));
  const calls = kinds.map(kind => page.client.callTool(TOOL, kind.args));
  const long = page.client.callTool(TOOL, utility(60, 100, 'long').args);
  await until(long, () => long.log.length >= 2);
  long.cancel();
  await Promise.all(calls.map(call => call.result));
  kinds.forEach((kind, at) => expect(lines(calls[at]!)).toEqual(kind.lines));
  await expect(long.result).rejects.toMatchObject({ state: 'cancelled' });
  expect(page.client.status.recovered, 'polling is not missing').toBe(0);
  expect((await server.metrics())['belay_calls_started_total']).toBe(11);
});

test('a silent connection is opened anew', async () => {
  const server = await startServer(['--keepalive', '30s', '--retry', '20ms']);
  const page = openPage(server, new Tab(), { silenceTimeout: 200 });
  await page.client.start();
  const call = page.client.callTool('longRunningOperation', { duration: 1.5, steps: 1 });
  await call.result;
  const resumed = page.requests.filter(({ method, headers }) => method === 'GET' && headers.has('last-event-id'));
  expect(resumed.length).toBeGreaterThan(2);
});

test('a session that is gone before it was used is begun again', async () => {
  const server = await startServer();
  const page = openPage(server);
  let refusals = 0;
  const route = page.route;
  page.route = url => {
    // What a server with very short sessions answers: its initialize is good, and the next request finds nothing.
    const isSecond = page.requests.at(-1)?.body?.includes('notifications/initialized') && refusals++ === 0;
    return isSecond ? new URL('/nothing/here', server.url) : route(url);
  };
  await page.client.start();
  expect(refusals).toBe(2);
  expect(page.client.status).toMatchObject({ state: 'connected' });
});

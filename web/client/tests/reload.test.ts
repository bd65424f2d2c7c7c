// What a user sees of a page that is reloaded: every message once and in order, and one result.
import { expect, test } from 'vitest';
import { BelayClient } from '../src/index.js';
import { openPage, saidBy, startServer, TOOL, utility } from './fixture.js';
import { lines, Tab, textOf, until } from './page.js';

test('AS-01, AS-03: a reload in the middle of a call', async () => {
  const server = await startServer();
  const tab = new Tab();
  const u = utility(3, 200);
  const first = openPage(server, tab);
  await first.client.start();
  const begun = first.client.callTool(TOOL, u.args);
  await until(begun, () => begun.log.length >= 4);
  first.die();
  await saidBy(server, 6);

  const second = openPage(server, tab);
  const call = second.client.calls()[0]!;
  expect(call).toMatchObject({ id: begun.id, tool: TOOL, arguments: u.args, state: 'running', recovered: true });
  expect(lines(call), 'there before any connection').toEqual(lines(begun));
  const seen = call.log.length;
  await second.client.start();
  expect(second.client.status).toMatchObject({ state: 'connected', wasReconnected: true });
  expect(second.client.sessionId).toBe(first.client.sessionId);
  expect(JSON.parse(textOf(await call.result)!)).toMatchObject({ success: true });
  expect(lines(call)).toEqual(u.lines);
  expect(call.progress).toMatchObject({ progress: 15, total: 15 });
  expect(second.client.status.recovered).toBe(call.log.filter(line => line.recovered).length);
  expect(call.log.slice(0, seen).some(line => line.recovered)).toBe(false);
  expect(second.requests.some(request => request.body?.includes('"initialize"'))).toBe(false);
  const metrics = await server.metrics();
  expect(metrics['belay_sessions']).toBe(1);
  expect(metrics['belay_calls_started_total']).toBe(1);
});

test('AS-02: the result comes while nobody listens', async () => {
  const server = await startServer();
  const tab = new Tab();
  const u = utility(1, 100);
  const first = openPage(server, tab);
  await first.client.start();
  const begun = first.client.callTool(TOOL, u.args);
  await until(begun, () => begun.log.length >= 3);
  first.die();
  await server.until(metrics => metrics['belay_calls_running'] === 0);
  const second = openPage(server, tab);
  await second.client.start();
  const call = second.client.calls()[0]!;
  await call.result;
  expect(lines(call)).toEqual(u.lines);
  await until(second.client, () => second.client.status.recovered > 0);
  expect(second.client.status.recovered).toBe(u.lines.length - begun.log.length);
});

test('AS-04, AS-08: three calls through two reloads', async () => {
  const server = await startServer();
  const tab = new Tab();
  const kinds = [utility(2, 100, 'a'), utility(3, 100, 'b')];
  let page = openPage(server, tab);
  await page.client.start();
  for (const kind of kinds) page.client.callTool(TOOL, kind.args);
  page.client.callTool('longRunningOperation', { duration: 2.5, steps: 5 });
  for (let round = 0; round < 2; ++round) {
    const [a, b] = page.client.calls();
    const from = a!.log.length;
    await until(a!, () => a!.log.length >= from + 3);
    await until(b!, () => b!.log.length >= 3);
    page.die();
    await saidBy(server, 4);
    page = openPage(server, tab);
    await page.client.start();
  }
  const calls = page.client.calls();
  expect(calls.map(call => call.tool)).toEqual([TOOL, TOOL, 'longRunningOperation']);
  const results = await Promise.all(calls.map(call => call.result));
  kinds.forEach((kind, at) => {
    expect(lines(calls[at]!)).toEqual(kind.lines);
    expect(JSON.parse(textOf(results[at]!)!).configuration).toEqual(kind.args);
  });
  expect(textOf(results[2]!)).toBe('Long running operation completed. Duration: 2.5 seconds, Steps: 5.');
  expect((await server.metrics())['belay_calls_started_total']).toBe(3);
});

test('AS-06: the page dies before any event reached it', async () => {
  const server = await startServer();
  const tab = new Tab();
  const u = utility(0.5, 100);
  const first = openPage(server, tab);
  await first.client.start();
  const begun = first.client.callTool(TOOL, u.args);
  first.die();
  const second = openPage(server, tab);
  const call = second.client.calls()[0]!;
  expect(call.id).toBe(begun.id);
  await second.client.start();
  // The server runs a call once per key, so that it may be sent again.
  await call.result;
  expect(lines(call)).toEqual(u.lines);
  expect((await server.metrics())['belay_calls_started_total']).toBe(1);
});

test('AS-12: a call is cancelled by the page after the reload', async () => {
  const server = await startServer();
  const tab = new Tab();
  const first = openPage(server, tab);
  await first.client.start();
  const begun = first.client.callTool(TOOL, utility(60, 100).args);
  await until(begun, () => begun.log.length >= 2);
  first.die();
  const second = openPage(server, tab);
  await second.client.start();
  const call = second.client.calls()[0]!;
  call.cancel('enough');
  await expect(call.result).rejects.toMatchObject({ name: 'CallError', state: 'cancelled', code: -32800 });
  expect(call.state).toBe('cancelled');
  await server.until(metrics => metrics['belay_calls_running'] === 0);
});

test('results are there after a reload, large ones as a note of their size', async () => {
  const server = await startServer();
  const tab = new Tab();
  const first = openPage(server, tab, { maxStoredResult: 80 });
  await first.client.start();
  await first.client.callTool('echo', { message: 'kept' }).result;
  await first.client.callTool('echo', { message: 'x'.repeat(100) }).result;
  await expect(first.client.callTool('no such tool').result).rejects.toMatchObject({ state: 'failed', code: -32602 });
  first.die();
  const second = openPage(server, tab);
  const [small, large, failed] = second.client.calls();
  expect(textOf(small!.value!)).toContain('kept');
  expect(textOf(await small!.result)).toContain('kept');
  expect(large).toMatchObject({ state: 'done', value: undefined });
  expect(large!.resultBytes).toBeGreaterThan(100);
  await expect(large!.result).rejects.toThrow(/too large/);
  expect(failed).toMatchObject({ state: 'failed' });
  expect(failed!.error?.message).toContain('Unknown tool');
  second.client.forget(small!);
  expect(second.client.calls()).toEqual([large, failed]);
});

test('the official client knows the server after a reload, without asking', async () => {
  const server = await startServer();
  const tab = new Tab();
  const first = openPage(server, tab);
  await first.client.start();
  const capabilities = first.client.client.getServerCapabilities();
  first.die();
  const second = openPage(server, tab);
  await second.client.start();
  expect(second.client.client.getServerCapabilities()).toEqual(capabilities);
  expect(second.client.client.getServerVersion()?.name).toBe('belay');
  expect((await second.client.client.listTools()).tools.length).toBeGreaterThan(5);
  for (const { headers } of second.requests) expect(headers.get('mcp-protocol-version')).toBe('2025-11-25');
});

test('ids are never used twice in a session', async () => {
  const server = await startServer();
  const tab = new Tab();
  const ids: string[] = [];
  for (let load = 0; load < 3; ++load) {
    const page = openPage(server, tab);
    await page.client.start();
    await page.client.client.ping();
    await page.client.client.callTool({ name: 'echo', arguments: { message: 'x' } });
    await page.client.callTool('echo', { message: 'y' }).result;
    for (const { body } of page.requests) {
      const { id } = JSON.parse(body ?? '{}') as { id?: string };
      if (id !== undefined && !body!.includes('"initialize"')) ids.push(id);
    }
    page.die();
  }
  expect(ids.length).toBe(9);
  expect(new Set(ids).size).toBe(ids.length);
});

test('the official client’s own calls survive too', async () => {
  const server = await startServer();
  const tab = new Tab();
  const u = utility(1, 100);
  const page = openPage(server, tab);
  await page.client.start();
  const progress: number[] = [];
  const result = page.client.client.callTool({ name: TOOL, arguments: u.args }, { onprogress: at => progress.push(at.progress) });
  await until(page.client, () => page.client.calls().length === 1);
  const call = page.client.calls()[0]!;
  await until(call, () => call.log.length >= 3);
  page.isOffline = true;
  await saidBy(server, 4);
  page.isOffline = false;
  expect(JSON.parse(textOf(await result as never)!)).toMatchObject({ success: true });
  expect(lines(call)).toEqual(u.lines);
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
  expect(progress.at(-1)).toBe(10);
});

test('a storage that is full costs the oldest calls, not the newest', async () => {
  const server = await startServer();
  const tab = new Tab();
  const put = tab.storage.tab.setItem.bind(tab.storage.tab);
  const used = (): number => [...Array(tab.storage.tab.length).keys()].reduce((sum, at) => sum + tab.storage.tab.getItem(tab.storage.tab.key(at)!)!.length, 0);
  tab.storage.tab.setItem = (key, value) => {
    if (used() + value.length > 12_000) throw new Error('QuotaExceededError');
    put(key, value);
  };
  const page = openPage(server, tab);
  await page.client.start();
  for (let at = 0; at < 30; ++at) await page.client.callTool('echo', { message: `${at} ${'x'.repeat(200)}` }).result;
  page.die();
  const stored = new BelayClient({ serverUrl: 'http://server.test/mcp', storage: tab.storage });
  expect(stored.hasSession).toBe(true);
  expect(stored.calls().length).toBeGreaterThan(5);
  expect(textOf(stored.calls().at(-1)!.value!)).toContain('29 ');
});

// What a page finds in its storage: too much to keep, or nothing that it has put there.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BelayClient } from '../src/index.js';
import { openPage, startServer, TOOL, utility } from './fixture.js';
import { lines, Tab, textOf, until } from './page.js';

const warn = vi.spyOn(console, 'warn');
beforeEach(() => void warn.mockReset().mockImplementation(() => {}));
afterEach(() => void warn.mockClear());

const entries = (tab: Tab): [string, string][] =>
  [...Array(tab.storage.tab.length).keys()].map(at => tab.storage.tab.key(at)!).map(key => [key, tab.storage.tab.getItem(key)!]);

/** A storage as a browser's, with room for so many characters. */
function smallTab(quota: number): Tab {
  const tab = new Tab();
  const put = tab.storage.tab.setItem.bind(tab.storage.tab);
  tab.storage.tab.setItem = (key, value) => {
    const used = entries(tab).reduce((sum, [name, each]) => sum + (name === key ? 0 : name.length + each.length), 0);
    if (used + key.length + value.length > quota) throw new DOMException('full', 'QuotaExceededError');
    put(key, value);
  };
  return tab;
}

test('a call that is too large for the storage costs no other call, and says that it is not kept', async () => {
  const server = await startServer();
  const tab = smallTab(100_000);
  const page = openPage(server, tab);
  await page.client.start();
  for (const message of ['one', 'two', 'three']) await page.client.callTool('echo', { message }).result;
  const large = page.client.callTool('echo', { message: 'x'.repeat(120_000) });
  expect(large.kept, 'already while it runs').toBe('partly');
  await large.result;
  expect(page.client.calls().map(({ kept }) => kept)).toEqual(['whole', 'whole', 'whole', 'partly']);
  expect(textOf(large.value!)).toContain('xxx');
  page.die();

  const again = openPage(server, tab);
  const calls = again.client.calls();
  expect(calls.map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done']);
  expect(calls.slice(0, 3).map(({ value }) => textOf(value!))).toEqual(['Echo: one', 'Echo: two', 'Echo: three']);
  expect(calls[3]).toMatchObject({ kept: 'partly', hasArguments: false, arguments: {}, value: undefined });
  expect(calls[3]!.resultBytes).toBeGreaterThan(120_000);
});

test('a storage without any room keeps nothing of a call, and says so', async () => {
  const server = await startServer();
  const tab = smallTab(4000);
  const page = openPage(server, tab);
  await page.client.start();
  tab.storage.tab.setItem('other', '');
  for (let size = 4000; size > 0; size = Math.floor(size / 2))
    try {
      tab.storage.tab.setItem('other', tab.storage.tab.getItem('other') + 'x'.repeat(size));
    } catch {
      // full
    }
  const call = page.client.callTool('echo', { message: 'unkept' });
  await call.result;
  expect(call).toMatchObject({ state: 'done', kept: 'not' });
  expect(page.client.calls()).toEqual([call]);
  page.die();
  expect(openPage(server, tab).client.calls()).toEqual([]);
});

test('a running call that is too large to keep whole goes on after a reload', async () => {
  const server = await startServer();
  const tab = smallTab(20_000);
  const u = utility(3, 100, 'y'.repeat(20_000));
  const first = openPage(server, tab);
  await first.client.start();
  const begun = first.client.callTool(TOOL, u.args);
  await until(begun, () => begun.log.length >= 3);
  expect(begun.kept).toBe('partly');
  first.die();

  const second = openPage(server, tab);
  const call = second.client.calls()[0]!;
  expect(call).toMatchObject({ id: begun.id, state: 'running', hasArguments: false });
  await second.client.start();
  expect(JSON.parse(textOf(await call.result)!)).toMatchObject({ success: true });
  expect(call.dropped + call.log.length, 'each line once').toBe(u.lines.length);
  expect(lines(call)).toEqual(u.lines.slice(-call.log.length));
});

test('a call whose arguments were not kept is not made again', async () => {
  const server = await startServer();
  const tab = smallTab(4000);
  const first = openPage(server, tab);
  await first.client.start();
  first.client.callTool('echo', { message: 'z'.repeat(5000) });
  first.die(); // before any event reached it
  const second = openPage(server, tab);
  await second.client.start();
  await expect(second.client.calls()[0]!.result).rejects.toMatchObject({ state: 'lost' });
  expect((await server.metrics())['belay_calls_repeated_total']).toBe(0);
});

test('calls that made room for newer ones are still on the page, and say that they are not kept', async () => {
  const server = await startServer();
  const tab = new Tab();
  const page = openPage(server, tab, { maxStored: 3000 });
  await page.client.start();
  for (let at = 0; at < 8; ++at) await page.client.callTool('echo', { message: `${at} ${'x'.repeat(300)}` }).result;
  const kept = page.client.calls().map(call => call.kept);
  expect(kept[0]).toBe('not');
  expect(kept.at(-1)).toBe('whole');
  expect(kept, 'the oldest').toEqual([...kept].sort());
  page.die();
  const stored = openPage(server, tab).client.calls();
  expect(stored.length).toBe(kept.filter(each => each === 'whole').length);
  expect(textOf(stored.at(-1)!.value!)).toContain('7 ');
  const size = entries(tab).filter(([key]) => key.startsWith('mcp_call.')).reduce((sum, [, value]) => sum + value.length, 0);
  expect(size).toBeLessThan(3000);
});

// --- values of another shape

/** A storage with a session, a running call, one that is done, one that failed. */
async function used(): Promise<{ tab: Tab; url: URL }> {
  const server = await startServer();
  const tab = new Tab();
  const page = openPage(server, tab);
  await page.client.start();
  await page.client.callTool('echo', { message: 'x' }).result;
  await page.client.callTool('no such tool').result.catch(() => {});
  const long = page.client.callTool(TOOL, utility(60, 20).args);
  await until(long, () => long.log.length >= 70);
  page.die();
  return { tab, url: server.url };
}

const odd = [
  'null', '5', '"text"', 'true', '[]', '{}', '[null]', '[[]]', '[5]', '{"__proto__":{}}', '{"constructor":5}', '{broken', '',
  '['.repeat(5000) + ']'.repeat(5000), `"${'x'.repeat(100_000)}"`, '\u0000\uffff\n',
];

test('whatever is stored under any key, the page comes up and works', async () => {
  const { tab, url } = await used();
  const whole = entries(tab);
  expect(whole.length).toBeGreaterThan(8);
  for (const [key] of whole)
    for (const value of odd) {
      const copy = tab.duplicate();
      copy.storage.tab.setItem(key, value);
      const client = new BelayClient({ serverUrl: url, storage: copy.storage });
      for (const call of client.calls()) {
        expect(typeof call.tool).toBe('string');
        JSON.stringify([call.arguments, call.progress, call.log, call.value, call.error?.data]);
        for (const line of call.log) new Date(line.at).toISOString();
      }
      await client.close();
    }
});

test('what does not fit is dropped with a line in the console, and once', async () => {
  const { tab, url } = await used();
  tab.storage.tab.setItem('mcp_calls', '{"0":"x"}');
  const client = new BelayClient({ serverUrl: url, storage: tab.storage });
  expect(client.calls()).toEqual([]);
  expect(warn.mock.calls.flat()).toEqual([expect.stringContaining('mcp_calls')]);
  expect(entries(tab).filter(([key]) => key.startsWith('mcp_call')), 'nor does it stay as nobody’s').toEqual([]);
  warn.mockClear();
  new BelayClient({ serverUrl: url, storage: tab.storage });
  expect(warn).not.toHaveBeenCalled();
});

test('every member of a stored record is looked at', async () => {
  const { tab, url } = await used();
  const records = entries(tab).filter(([, value]) => value.startsWith('{'));
  expect(records.length).toBeGreaterThan(3);
  for (const [key, text] of records) {
    const paths: (string | number)[][] = [];
    const walk = (value: unknown, path: (string | number)[]): void => {
      if (path.length > 0) paths.push(path);
      if (typeof value === 'object' && value !== null)
        for (const [name, each] of Object.entries(value)) walk(each, [...path, Array.isArray(value) ? Number(name) : name]);
    };
    walk(JSON.parse(text), []);
    for (const path of paths.filter(each => each.length <= 4))
      for (const value of [null, 5, -1, 1e300, 'text', [], {}, [null], true]) {
        const copy = tab.duplicate();
        const whole = JSON.parse(text) as Record<string, unknown>;
        let at = whole as Record<string | number, unknown>;
        for (const name of path.slice(0, -1)) at = at[name] as typeof at;
        at[path.at(-1)!] = value;
        copy.storage.tab.setItem(key, JSON.stringify(whole));
        const client = new BelayClient({ serverUrl: url, storage: copy.storage });
        for (const call of client.calls()) {
          expect([call.startedAt, call.endedAt ?? 0].every(each => Number.isFinite(each) && Math.abs(each) < 9e15)).toBe(true);
          expect(call.progress === undefined || typeof call.progress.progress === 'number').toBe(true);
          expect(call.state === 'running' || call.state === 'done').toBe(call.error === undefined);
          for (const line of call.log) expect(new Date(line.at).toISOString() + line.level).toMatch(/^.*Z[a-z]+$/);
        }
      }
  }
});

test('a page whose stored session is of no use begins another', async () => {
  const server = await startServer();
  const cases: [string, (stored: { initialize: Record<string, unknown> }) => unknown][] = [
    ['session', ({ initialize }) => ({ initialize })],
    ['session', stored => ({ ...stored, initialize: { ...stored.initialize, protocolVersion: '1999-01-01' } })],
    ['session', stored => ({ ...stored, initialize: { ...stored.initialize, capabilities: [] } })],
    ['session_id', () => 'of nobody'],
    ['session_id', () => 'not-there'],
    ['session_id', () => 'x'.repeat(1000)],
    ['last_event_id', () => 'nonsense'],
    ['last_event_id', () => 'line\nbreak'],
    ['last_event_handled', () => [5]],
  ];
  for (const [key, change] of cases) {
    const tab = new Tab();
    const first = openPage(server, tab);
    await first.client.start();
    first.die();
    const changed = change(JSON.parse(tab.storage.tab.getItem('mcp_session')!));
    tab.storage.tab.setItem(`mcp_${key}`, typeof changed === 'string' ? changed : JSON.stringify(changed));
    const page = openPage(server, tab);
    await page.client.start();
    expect(page.client.status.state, `${key}: ${JSON.stringify(changed).slice(0, 80)}`).toBe('connected');
    await page.client.callTool('echo', { message: 'works' }).result;
    await until(page.client, () => page.requests.some(({ method, headers }) => method === 'GET' && headers.get('last-event-id') !== 'nonsense'));
    page.die();
  }
});

test('odd texts in the storage that tabs share are no address and no tab', () => {
  for (const value of [...odd, 'not an address', 'javascript:alert(1)']) {
    const tab = new Tab();
    for (const key of ['server_url', 'last_server_url', 'last_tab_id']) tab.storage.shared.setItem(`mcp_${key}`, value);
    for (const key of ['tab_id', 'disconnected']) tab.storage.tab.setItem(`mcp_${key}`, value);
    const client = new BelayClient({ storage: tab.storage, persistence: 'browser' });
    expect(client.serverUrl).toBeUndefined();
    expect(tab.storage.tab.getItem('mcp_tab_id')).toMatch(/^[\w-]{1,64}$/);
  }
});

// @vitest-environment jsdom
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

const PREFIX = 'belay_console_';
const nested = '['.repeat(5000) + ']'.repeat(5000);
const odd = [
  'null', '5', '"text"', 'true', '[]', '{}', '[null]', '[5]', '[[]]', '{"items":5}', '{"items":[null]}', '{"items":[{}]}',
  '{"draft":5}', '{"draft":{"message":[]}}', '{"draft":null,"json":5}', '{"text":5,"model":{}}', '{"name":{}}', '{"section":"no"}',
  '{"section":"tools","tool":{}}', '{"section":"__proto__"}', '{"__proto__":{}}', '[{"at":1e300,"kind":"sent","summary":"x"}]',
  '[{"at":5,"kind":"sent","summary":{}}]', '[{"at":5,"kind":"sent","summary":"x","message":{"method":{},"params":5}}]',
  '{"name":5,"version":{}}', '{broken', '', nested, `{"draft":${nested}}`,
];
const echo = {
  name: 'echo',
  inputSchema: { type: 'object', properties: { message: { type: 'string' }, constructor: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } } },
};
const server = 'http://server.test/mcp';

let root: Root;
beforeEach(() => {
  vi.resetModules();
  sessionStorage.clear();
  Element.prototype.scrollIntoView = () => {};
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} });
  vi.spyOn(console, 'warn').mockImplementation(() => {});
  vi.spyOn(console, 'error').mockImplementation(() => {});
});
afterEach(async () => {
  root?.unmount();
  await new Promise(resolve => setTimeout(resolve, 0));
  document.body.replaceChildren();
  vi.restoreAllMocks();
});

/** The page as a load makes it, with whatever is stored. */
async function load(): Promise<unknown[]> {
  const [{ McpProvider }, { App }, { Questions }, { Timeline }] = await Promise.all([
    import('belay-react'),
    import('../src/app'),
    import('../src/questions'),
    import('../src/timeline'),
  ]);
  const errors: unknown[] = [];
  root = createRoot(document.body.appendChild(document.createElement('div')), {
    onUncaughtError: error => errors.push(error),
    onCaughtError: error => errors.push(error),
  });
  root.render(
    <McpProvider options={{ serverUrl: server }} autoStart={false}>
      <App questions={new Questions()} timeline={new Timeline()} />
    </McpProvider>,
  );
  await vi.waitFor(() => expect(document.querySelector('[role=status]') !== null || errors.length > 0).toBe(true), { timeout: 20_000 });
  return errors;
}

const valid = {
  selection: { section: 'tools', tool: 'echo' },
  view: 'work',
  loads: [1000],
  server: { name: 'a server', version: '1' },
  subscriptions: ['a://b'],
  updated: ['a://b'],
  timeline: [{ key: 0, at: 1000, kind: 'sent', stream: 's', summary: 'ping', message: { jsonrpc: '2.0', id: 1, method: 'ping' } }],
  'form:echo': { draft: { message: 'typed', tags: ['a'] } },
  [`tools:${server}`]: { items: [echo] },
  [`resources:${server}`]: { items: [{ uri: 'a://b', name: 'b' }] },
  [`templates:${server}`]: { items: [{ uriTemplate: 'a://{constructor}', name: 't' }] },
  [`prompts:${server}`]: { items: [{ name: 'p', arguments: [{ name: '__proto__' }] }] },
  'template:a://{constructor}': { constructor: 'x' },
  'prompt:p': {},
} satisfies Record<string, unknown>;

const store = (values: Record<string, unknown>): void => {
  for (const [key, value] of Object.entries(values))
    sessionStorage.setItem(PREFIX + key, JSON.stringify(value));
};

test('what was stored is shown', async () => {
  store(valid);
  expect(await load()).toEqual([]);
  expect(document.querySelector('h1')?.textContent).toBe('a server');
  expect([...document.querySelectorAll<HTMLInputElement>('input, textarea')].map(({ value }) => value)).toContain('typed');
  expect(console.warn).not.toHaveBeenCalled();
});

const sections = {
  tools: valid.selection,
  resources: { section: 'resources', resource: 'a://{constructor}' },
  prompts: { section: 'prompts', prompt: 'p' },
};
const [lists, own] = [/^(tools|resources|templates|prompts):/, /^(selection|view|loads|server)$/];
const keys = Object.keys(valid);
for (const [what, which, selection] of [
  ['of the page', keys.filter(key => own.test(key)), sections.tools],
  ['of what the server has', keys.filter(key => lists.test(key)), sections.tools],
  ...Object.entries(sections).map(
    ([name, selection]) => [`of ${name}`, keys.filter(key => !own.test(key) && !lists.test(key)), selection] as const,
  ),
] as const)
  test(`whatever is stored ${what}, the page is there`, async () => {
    for (const value of odd) {
      if (which.includes('loads')) vi.resetModules(); // it is read when its module is loaded
      sessionStorage.clear();
      store({ ...valid, selection });
      for (const key of which) sessionStorage.setItem(PREFIX + key, value);
      expect(await load(), value.slice(0, 80)).toEqual([]);
      root.unmount();
      document.body.replaceChildren();
    }
  });

test('names that every object has are names like others', async () => {
  for (const selection of [sections.resources, sections.prompts]) {
    sessionStorage.clear();
    store({ ...valid, selection, 'template:a://{constructor}': {} });
    expect(await load()).toEqual([]);
    const values = [...document.querySelectorAll<HTMLInputElement>('.tool-form input')].map(({ value }) => value);
    expect(values).toEqual(['']);
    root.unmount();
    document.body.replaceChildren();
  }
});

test('what does not fit is dropped, with a line in the browser’s console', async () => {
  store(valid);
  sessionStorage.setItem(`${PREFIX}timeline`, '{"0":5}');
  await load();
  expect(vi.mocked(console.warn).mock.calls.flat()).toEqual([expect.stringContaining(`${PREFIX}timeline`)]);
  expect(sessionStorage.getItem(`${PREFIX}timeline`)).toBeNull();
});

test('a value that is too long for the storage is not kept, nor is the one before it', async () => {
  const { load: read, save } = await import('../src/storage');
  const text = (value: unknown): value is string => typeof value === 'string';
  save('x', 'short');
  expect(read('x', text)).toBe('short');
  save('x', 'x'.repeat(1_000_000));
  expect(read('x', text)).toBeUndefined();
});

// @vitest-environment jsdom
import { StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { act } from 'react';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryStorage, type BelayClient, type Call } from 'belay-client';
import { McpProvider, useCall, useMcpClient } from '../src/index.js';
import { Server } from '../../../tests/clients/lib/server.mjs';

(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = false;

let server: Server;
let root: Root;
let client: BelayClient;
const storage = { tab: new MemoryStorage(), shared: new MemoryStorage() };

function Line({ call }: { call: Call }) {
  const { tool, state, log } = useCall(call);
  return <li>{`${tool} ${state} ${log.length}`}</li>;
}
function View() {
  const mcp = useMcpClient();
  client = mcp.client;
  return (
    <>
      <p role="status">{mcp.status.state}</p>
      <ul>
        {mcp.calls.map(call => (
          <Line key={call.id} call={call} />
        ))}
      </ul>
    </>
  );
}

const text = (selector: string): string | null | undefined => document.querySelector(selector)?.textContent;
async function shows(selector: string, wanted: RegExp): Promise<void> {
  await expect.poll(() => text(selector), { timeout: 15_000 }).toMatch(wanted);
}

function mount(): void {
  const options = { serverUrl: server.url, storage };
  root = createRoot(document.body.appendChild(document.createElement('div')));
  root.render(
    <StrictMode>
      <McpProvider options={options}>
        <View />
      </McpProvider>
    </StrictMode>,
  );
}

beforeEach(async () => {
  server = await Server.start();
});
afterEach(async () => {
  root.unmount();
  await new Promise(resolve => setTimeout(resolve, 0));
  await server.stop();
});

test('one session under StrictMode, which an unmount keeps', async () => {
  mount();
  await shows('[role=status]', /^connected$/);
  expect((await server.metrics())['belay_sessions']).toBe(1);
  client.callTool('utility-notifications', { durationSeconds: 2, intervalMs: 100, messagePrefix: 'x' });
  await shows('li', /running ([3-9]|1\d)$/);
  const id = client.sessionId;

  await act(async () => root.unmount());
  await expect.poll(() => client.status.state).toBe('disconnected');
  document.body.replaceChildren();
  mount();
  await expect.poll(() => text('li'), { message: 'the call is there at the first render' }).toMatch(/^utility-notifications running/);
  await shows('li', /^utility-notifications done 22$/);
  expect(client.sessionId).toBe(id);
  const metrics = await server.metrics();
  expect(metrics['belay_sessions']).toBe(1);
  expect(metrics['belay_calls_started_total']).toBe(1);
});

test('a component without a provider is told what is missing', async () => {
  const errors: unknown[] = [];
  root = createRoot(document.createElement('div'), { onUncaughtError: error => errors.push(error) });
  root.render(<View />);
  await expect.poll(() => String(errors[0])).toContain('put an <McpProvider> around');
});

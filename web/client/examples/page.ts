declare const statusLine: HTMLElement;
declare const output: HTMLElement;
declare const bar: HTMLProgressElement;
// [page]
import { BelayClient } from 'belay-client';

const client = new BelayClient({
  serverUrl: 'https://tools.example.com/mcp',
  elicitation: async ({ message }) => ({ action: confirm(message) ? 'accept' : 'decline' }),
});
client.subscribe(() => (statusLine.textContent = client.status.message ?? client.status.state));
await client.start();

const call = client.calls().find(each => each.state === 'running') ?? client.callTool('deploy', { service: 'web' });
call.subscribe(() => (bar.value = call.progress?.progress ?? 0));
output.textContent = JSON.stringify(await call.result);
// [page]

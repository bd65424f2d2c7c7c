declare function show(call: Call): void;
declare function render(...what: unknown[]): void;
import type { Call } from 'belay-client';
// [first]
import { BelayClient } from 'belay-client';

const client = new BelayClient({ serverUrl: '/mcp' });
for (const call of client.calls()) show(call); // of earlier page loads: there at once, before any connection
await client.start(); // goes on with the stored session, or begins one

const call = client.callTool('deploy', { service: 'web' });
call.subscribe(() => render(call.state, call.progress, call.log));
const result = await call.result;
// [first]
render(result);

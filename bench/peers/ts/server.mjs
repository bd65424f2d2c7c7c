// The peer on the TypeScript SDK: its ordinary stateful set-up, one transport and one server per
// session, on node:http. `--json` answers as application/json, else as the SDK's default, SSE.
// Prints its port, and ends when its standard input ends.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const enableJsonResponse = process.argv.includes('--json');
const transports = new Map();

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse,
    onsessioninitialized: (id) => transports.set(id, transport),
    onsessionclosed: (id) => transports.delete(id),
  });
  const server = new McpServer({ name: 'peer', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Sends a text back', inputSchema: { message: z.string() } },
    async ({ message }) => ({ content: [{ type: 'text', text: `Echo: ${message}` }] }),
  );
  await server.connect(transport);
  return transport;
}

async function handle(request, response) {
  const id = request.headers['mcp-session-id'];
  const transport = id ? transports.get(id) : await open();
  if (!transport) {
    response.writeHead(404).end();
    return;
  }
  await transport.handleRequest(request, response);
}

const http = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
process.stdin.resume().on('end', () => process.exit(0));

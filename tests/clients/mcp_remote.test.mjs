// mcp-remote turns a local client's stdio into requests to a server: what hosts that only start programs use to get to
// one. The official clients speak to it as they would to a local server.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clients } from './lib/clients.mjs';
import { checkResult, expectedNotes, notesOf, notifications, utility } from './lib/expect.mjs';
import { Server } from './lib/server.mjs';

const program = fileURLToPath(new URL('node_modules/mcp-remote/dist/proxy.js', import.meta.url));

async function bridged(adapter, body) {
    const server = await Server.start();
    const config = await mkdtemp(join(tmpdir(), 'mcp-remote-'));
    const { client, transport, callTool } = adapter.openStdio({
        command: process.execPath,
        args: [program, server.url.href, '--transport', 'http-only'],
        env: { ...process.env, MCP_REMOTE_CONFIG_DIR: config },
        stderr: 'pipe',
    });
    const seen = [];
    transport.onmessage = (message) => seen.push(structuredClone(message));
    let said = '';
    transport.stderr.on('data', (text) => (said += text));
    try {
        await client.connect(transport);
        await body({ server, client, callTool, seen });
    } catch (error) {
        throw new Error(`mcp-remote said\n${said}`, { cause: error });
    } finally {
        await client.close();
        await server.stop();
        await rm(config, { recursive: true, force: true });
    }
}

async function listAndCall({ client, callTool }) {
    const { tools } = await client.listTools();
    const echo = tools.find(({ name }) => name === 'echo');
    assert.deepEqual(echo.inputSchema.required, ['message']);
    const result = await callTool({ name: 'echo', arguments: { message: 'over the bridge' } });
    assert.deepEqual(result.content, [{ type: 'text', text: 'Echo: over the bridge' }]);
}

async function progress({ server, callTool, seen }) {
    const args = utility(2, 200, 'bridged');
    // A handler makes the client send a token. It may miss the last step: a client that reads it together with the
    // result has forgotten the handler by then. So the messages are what counts.
    const result = await callTool({ name: notifications, arguments: args }, { timeout: 120_000, onprogress: () => {} });
    checkResult(result, args);
    assert.deepEqual(notesOf(seen, args), expectedNotes(args));
    const steps = seen.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params);
    assert.deepEqual(
        steps.map(({ progress: at, total }) => [at, total]), Array.from({ length: 10 }, (_, at) => [at + 1, 10]));
    assert.equal((await server.metrics()).belay_calls_started_total, 1);
}

describe('mcp-remote', { concurrency: 4 }, () => {
    for (const adapter of clients)
        for (const [name, body] of [['lists and calls', listAndCall], ['a long call with progress', progress]])
            test(`${name} [${adapter.name}]`, { timeout: 180_000 }, () => bridged(adapter, body));
});

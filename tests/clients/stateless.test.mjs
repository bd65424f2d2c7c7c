// The mount without sessions, with stock clients.
import assert from 'node:assert/strict';
import { scenarios } from './lib/scenario.mjs';

async function connect({ adapter, server, wire, onClose }) {
    const face = adapter.open({ url: new URL('/hello/mcp', server.url), wire });
    onClose(() => face.client.close());
    await face.connect();
    return face;
}

async function connectAndCall(world) {
    const { server, wire } = world;
    const { client, transport, callTool } = await connect(world);
    assert.equal(client.getServerVersion().name, 'hello');
    assert.equal(transport.sessionId, undefined);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name), ['greet', 'countdown']);
    const greeting = await callTool({ name: 'greet', arguments: { name: 'Ada' } });
    assert.equal(greeting.content[0].text, 'Hello, Ada!');
    const progress = [];
    const result = await callTool(
        { name: 'countdown', arguments: { from: 2 } }, { onprogress: ({ progress: value }) => progress.push(value) });
    assert.equal(result.content[0].text, 'Liftoff');
    assert.deepEqual(progress, [1, 2]);
    assert.ok(wire.exchanges.every(({ events }) => events.every(({ id }) => id === undefined)));
    const metrics = await server.metrics();
    for (const name of ['belay_sessions', 'belay_streams', 'belay_store_bytes', 'belay_calls_running'])
        assert.equal(metrics[name], 0, name);
}

async function closing(world) {
    const { client, callTool } = await connect(world);
    const call = await new Promise((resolve) => {
        const running = callTool(
            { name: 'countdown', arguments: { from: 600 } }, { onprogress: () => resolve({ running }) });
        running.catch(() => {});
    });
    await client.close();
    await assert.rejects(call.running);
    const metrics = await world.server.until(({ belay_calls_running: running }) => running === 0);
    assert.equal(metrics['belay_calls_ended_total{reason="cancelled"}'], 1);
}

// The GET that clients try is refused: there is no stream without a session.
const options = { refusals: [405] };

scenarios('without sessions', [
    ['connect, list, call with progress', options, connectAndCall],
    ['closing the connection ends the call', options, closing],
]);

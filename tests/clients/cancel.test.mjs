// The next page cancels a call of the page that died, by the old request id.
import assert from 'node:assert/strict';
import { isResponse, notesOf, notifications, utility } from './lib/expect.mjs';
import { scenarios } from './lib/scenario.mjs';

const args = utility(60, 100, 'cancel me');

async function leaveRunning(open) {
    const page = await open();
    page.call('a', notifications, args);
    await page.until(() => notesOf(page.seen, args).length >= 2);
    return page.leave();
}

function checkCancelled(next, { id }) {
    const last = next.seen.at(-1);
    assert.equal(last.id, id);
    assert.equal(last.error.code, -32800);
    assert.equal(next.seen.filter(isResponse).length, 1, 'one answer');
}

/** v1 does not take an error for an answer and resumes at it; 204 makes it stop. */
async function checkQuiet({ adapter, wire }, call) {
    if (adapter.name === 'v1')
        await wire.until(() => wire.of(call).at(-1).status === 204);
    assert.deepEqual(wire.of(call).map(({ status }) => status), adapter.name === 'v1' ? [200, 200, 204] : [200, 200]);
}

async function attached(world) {
    const { page: open, server, wire } = world;
    const kept = await leaveRunning(open);
    const next = await open(kept);
    await next.follow('a', kept.calls.a);
    await next.cancel(kept.calls.a.id);
    assert.equal(wire.exchanges.at(-1).status, 202);
    await next.until(() => next.seen.some(isResponse));
    checkCancelled(next, kept.calls.a);
    const stream = wire.of(kept.calls.a)[1];
    await wire.until(() => stream.ended);
    assert.equal(stream.ended, 'end', 'the server closes after the error');
    assert.equal((await server.metrics()).belay_calls_running, 0);
    await checkQuiet(world, kept.calls.a);
}

async function detached(world) {
    const { page: open, server } = world;
    const kept = await leaveRunning(open);
    const next = await open(kept);
    await next.cancel(kept.calls.a.id);
    await server.until((now) => now.belay_calls_running === 0);
    await next.follow('a', kept.calls.a);
    await next.until(() => next.seen.some(isResponse));
    checkCancelled(next, kept.calls.a);
    await checkQuiet(world, kept.calls.a);
}

scenarios('cancel after refresh', [
    ['with the stream attached (AS-12)', { flags: ['--retry', '100ms'] }, attached],
    ['before the stream is attached (AS-12)', { flags: ['--retry', '100ms'] }, detached],
]);

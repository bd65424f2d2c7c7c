// A session of 2025-06-18: its clients cannot take events with empty data, so the cursor comes in a typed event.
import assert from 'node:assert/strict';
import {
    checkResult, checkTypedPriming, checkWhole, messageBytes, notesOf, notifications, utility,
} from './lib/expect.mjs';
import { scenarios } from './lib/scenario.mjs';

const offer = '2025-06-18';

async function refresh(world, keepVersion) {
    const { wire, pages } = world;
    const page = await world.heldPage(3 * messageBytes, { offer });
    assert.equal(page.version, offer);
    const args = utility(2, 200, 'older');
    page.call('a', notifications, args);
    await page.until(() => notesOf(page.seen, args).length >= 3);
    const { version, ...rest } = await page.leave();
    const kept = keepVersion ? { version, ...rest } : rest;
    const since = wire.exchanges.length;
    const next = await world.page(kept);
    checkResult(await next.resume(kept.calls.a), args);
    checkWhole(pages, args);
    assert.equal(wire.of(kept.calls.a).length, 2);
    wire.of(kept.calls.a).forEach(checkTypedPriming);
    // The standalone stream too, if the page lived long enough to read of it.
    wire.exchanges.filter(({ stream, text }) => stream && text).forEach(checkTypedPriming);
    const sent = wire.exchanges.slice(since).map(({ headers }) => headers['mcp-protocol-version']);
    assert.deepEqual(sent, [keepVersion ? offer : undefined]);
}

async function typedCursor(world) {
    const { wire } = world;
    const page = await world.heldPage(0, { offer });
    // Without progress this call has no message but its result: the typed event is the only cursor.
    const call = page.call('a', 'longRunningOperation', { duration: 1, steps: 2 });
    await page.until(() => call.cursor);
    assert.deepEqual(page.errors, []);
    const kept = await page.leave();
    const next = await world.page(kept);
    const result = await next.resume(kept.calls.a);
    assert.equal(result.content[0].text, 'Long running operation completed. Duration: 1 seconds, Steps: 2.');
    assert.equal(wire.of(kept.calls.a).length, 2);
    wire.of(kept.calls.a).forEach(checkTypedPriming);
}

scenarios('2025-06-18', [
    ['resume mid-call (AS-07)', {}, (world) => refresh(world, true)],
    ['resume mid-call without a version header', {}, (world) => refresh(world, false)],
    ['cut before the first message (AS-07)', {}, typedCursor],
]);

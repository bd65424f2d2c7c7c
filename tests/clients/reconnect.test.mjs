// The stock clients reconnect by themselves when TCP breaks under them; the same instance gets every event once.
import assert from 'node:assert/strict';
import { checkResult, checkWhole, notesIn, notifications, utility } from './lib/expect.mjs';
import { Proxy } from './lib/proxy.mjs';
import { scenarios } from './lib/scenario.mjs';

const reconnectionOptions
    = { initialReconnectionDelay: 50, maxReconnectionDelay: 50, reconnectionDelayGrowFactor: 1, maxRetries: 5 };

async function openThrough(world, budget, options) {
    const proxy = await Proxy.start(world.server.url, budget, options);
    world.onClose(() => proxy.close());
    return [proxy, await world.page({ url: proxy.url, reconnectionOptions })];
}

async function destroyed(world) {
    const { server, wire, pages } = world;
    // A few events on each connection but the last: however slow all this is, the call is not over before the cuts are.
    let bytes = 500;
    const [proxy, page] = await openThrough(world, () => bytes, { holds: true });
    const args = utility(2, 100, 'under the wire');
    const call = page.call('a', notifications, args);
    for (let cut = 1; cut <= 3; ++cut) {
        // Each cut hits a connection that has delivered a message, not only its first event, which has none.
        await page.until(() => {
            const connections = wire.of(call);
            return connections.length === cut && connections.at(-1).events.slice(1).some(({ id }) => id === call.newest);
        });
        if (cut === 3)
            bytes = Infinity;
        proxy.destroyAll();
    }
    checkResult(await call.result, args);
    checkWhole(pages, args);
    assert.equal(wire.of(call).length, 4);
    assert.equal((await server.metrics()).belay_sessions, 1);
}

/** One short call per cut, at every so many bytes of its stream. */
async function everyByte(world) {
    const { wire } = world;
    let next = Infinity;
    const [proxy, page] = await openThrough(world, () => {
        const bytes = next;
        next = Infinity;
        return bytes;
    });
    const run = async (at) => {
        next = at;
        const since = page.seen.length;
        const call = page.call(at, 'burst', { count: 4, bytes: 30 });
        const result = await call.result;
        assert.equal(result.content[0].text, '4 messages sent', `cut at ${at}`);
        const notes = notesIn(page.seen.slice(since), 'burst').map((data) => data.split(' ')[1]);
        assert.deepEqual(notes, ['1/4', '2/4', '3/4', '4/4'], `cut at ${at}`);
        assert.equal(page.seen.slice(since).filter((message) => message.result).length, 1, `cut at ${at}`);
        return wire.of(call);
    };
    const [whole] = await run(Infinity);
    const size = whole.text.length;
    // A step that shares no factor with the event's length, so that the cuts fall everywhere in an event.
    for (let at = 1; at < size; at += 13)
        await run(at);
    assert.ok(proxy.cuts > size / 20, `${proxy.cuts} cuts`);
}

/** One long call that is cut again and again at random. */
async function randomBytes(world) {
    const { t, wire } = world;
    const seed = Number(process.env.BELAY_SEED ?? Date.now() % 1_000_000);
    t.diagnostic(`BELAY_SEED=${seed}`);
    const random = generator(seed);
    const [proxy, page] = await openThrough(world, () => Math.floor(random() * 4000));
    const count = 300;
    const call = page.call('a', 'burst', { count, bytes: 100 });
    const result = await call.result;
    assert.equal(result.content[0].text, `${count} messages sent`);
    const notes = notesIn(page.seen, 'burst');
    const expected = Array.from({ length: count }, (_, at) => `${at + 1}/${count}`);
    assert.deepEqual(notes.map((data) => data.split(' ')[1]), expected);
    assert.ok(notes.every((data) => data.length === 100));
    assert.equal(page.seen.filter((message) => message.result?.content).length, 1);
    assert.ok(proxy.cuts > 5, `${proxy.cuts} cuts`);
    assert.equal(wire.of(call).length, proxy.cuts + 1);
}

/** mulberry32 */
function generator(state) {
    return () => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
}

const flags = ['--retry', '20ms'];

scenarios('automatic reconnect', [
    ['connections destroyed three times in one call', { flags, errors: true }, destroyed],
    ['cut at many bytes of a short stream (AS-10)', { flags, errors: true }, everyByte],
    ['cut at random bytes of a long stream (AS-10)', { flags, errors: true }, randomBytes],
]);

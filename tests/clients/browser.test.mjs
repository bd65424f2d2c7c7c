// A web page has six connections per origin, and an Origin header tells the server so: it keeps at most four streams
// of the session open and lets the other calls poll.
import assert from 'node:assert/strict';
import { checkResult, checkWhole, notifications, utility } from './lib/expect.mjs';
import { scenarios } from './lib/scenario.mjs';

const pool = 6;
const budget = 4;

async function tenCalls({ page: open, server, wire, pages }) {
    const page = await open({ headers: { Origin: `http://localhost:${server.url.port}` } });
    const list = Array.from({ length: 10 }, (_, at) => utility(8, 400, `call ${'abcdefghij'[at]}`));
    let finished = 0;
    const calls = list.map((args, at) => {
        const call = page.call(at, notifications, args);
        call.result.then(() => (finished += 1), () => {});
        return call;
    });
    await wire.until(() => calls.every(({ exchange }) => exchange?.openedAt));
    assert.equal(finished, 0, 'all ten run although the pool has room for six');
    // Two sockets: the client may see the fifth stream open before it sees the first one closed.
    await wire.until(() => wire.open <= budget);
    assert.equal(finished, 0, 'the server closed them, not the end of a call');
    // The pool is never full of streams, so the page can still ask.
    await page.ping();
    assert.equal(finished, 0);
    const results = await Promise.all(calls.map(({ result }) => result));
    results.forEach((result, at) => checkResult(result, list[at]));
    list.forEach((args) => checkWhole(pages, args));
    for (const [at, call] of calls.entries())
        for (const exchange of wire.of(call))
            for (const args of list)
                assert.ok(args === list[at] || !exchange.text.includes(args.messagePrefix));
    const { belay_sessions: sessions, belay_calls_started_total: started } = await server.metrics();
    assert.deepEqual({ sessions, started }, { sessions: 1, started: 10 });
}

scenarios('browser', [
    [
        'ten concurrent calls under the connection budget',
        { flags: ['--retry', '100ms'], wire: { connections: pool } },
        tenCalls,
    ],
]);

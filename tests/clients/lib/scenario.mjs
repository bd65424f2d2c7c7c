// One test body, run once per client, each time against a server of its own.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clients } from './clients.mjs';
import { Page } from './page.mjs';
import { Server } from './server.mjs';
import { Wire } from './wire.mjs';

/**
 * A list of [name, options, body]. Options: flags of the server; wire, options of the Wire; errors, when the client is
 * expected to report some; refusals, the statuses that the server may refuse with.
 */
export function scenarios(title, list) {
    // Tests wait for timers of seconds; more at once would make them wait for the processor.
    describe(title, { concurrency: 6 }, () => {
        for (const [name, options, body] of list)
            for (const adapter of clients)
                test(`${name} [${adapter.name}]`, { timeout: 60_000 }, (t) => run(t, adapter, options, body));
    });
}

async function run(t, adapter, { flags = [], wire: wireOptions, errors = false, refusals = [] }, body) {
    // These clients wait as they are told, and the default of 3 s would only be waited for.
    const server = await Server.start(flags.includes('--retry') ? flags : [...flags, '--retry', '1s']);
    const wire = new Wire(wireOptions);
    const pages = [];
    const closers = [];
    // The server is stopped and judged whether or not the body passes; the body's failure is the one reported.
    let failure;
    try {
        await body({
            t,
            adapter,
            server,
            wire,
            pages,
            onClose: (closer) => closers.push(closer),
            async page(kept = {}) {
                const page = new Page(adapter, { url: server.url, wire, ...kept });
                pages.push(page);
                await page.connect();
                return page;
            },
        });
        assert.deepEqual(wire.exchanges.filter(({ status }) => status >= 400 && !refusals.includes(status)), []);
        // A response to a page that died carries an id which the next page never used; clients report that.
        if (!errors)
            assert.deepEqual(
                pages.flatMap((page) => page.errors).filter((error) => !/unknown message id/i.test(error.message)), []);
    } catch (error) {
        failure = error;
        t.diagnostic(server.errors);
    }
    await Promise.allSettled(pages.map((page) => page.leave()));
    await Promise.allSettled(closers.map((closer) => closer()));
    try {
        await server.stop();
    } catch (error) {
        failure ??= error;
        t.diagnostic(String(error));
    }
    if (failure)
        throw failure;
}

// The server closes the connection in the middle of a call; the client waits as told and comes back (AS-54).
import assert from 'node:assert/strict';
import { checkPriming } from './lib/expect.mjs';
import { scenarios } from './lib/scenario.mjs';

async function reconnection({ page: open, wire }) {
    const page = await open();
    // A client keeps the last retry of any of its streams, so the standalone one must have given its own before.
    await wire.until(() => wire.exchanges.some(({ method, events }) => method === 'GET' && events.length > 0));
    const call = page.call('a', 'test_reconnection');
    const result = await call.result;
    assert.match(result.content[0].text, /^Reconnection test completed successfully/);
    const exchanges = wire.of(call);
    assert.equal(exchanges.length, 2);
    const [post, get] = exchanges;
    checkPriming(post);
    assert.equal(post.ended, 'end');
    assert.ok(!post.text.includes('"result"'));
    const retry = Number(post.events.findLast((event) => event.retry).retry);
    assert.ok(retry >= 500 && retry <= 625, `retry ${retry}`);
    assert.equal(get.headers['last-event-id'], post.events.findLast((event) => event.id).id);
    assert.ok(get.askedAt - post.endedAt >= 450, `came back after ${get.askedAt - post.endedAt} ms`);
    assert.ok(get.text.includes('"result"'));
    assert.deepEqual(page.seen.filter((message) => message.result?.content).length, 1);
}

scenarios('polling', [
    ['test_reconnection (AS-54)', {}, reconnection],
]);

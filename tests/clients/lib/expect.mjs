// What the reference tools send, in full, so that tests compare whole lists.
import assert from 'node:assert/strict';

export const notifications = 'utility-notifications';

/** U(d, i) of the acceptance scenarios. Multiples of 100 ms: how a half is rounded to one decimal is not specified. */
export function utility(durationSeconds, intervalMs, messagePrefix) {
    return { durationSeconds, intervalMs, messagePrefix };
}

/** No message of the tool takes more bytes on the wire. */
export const messageBytes = 300;

export const tickCount = ({ durationSeconds, intervalMs }) =>
    Math.max(1, Math.floor(durationSeconds * 1000 / intervalMs));

export function expectedNotes(args) {
    const { durationSeconds, intervalMs, messagePrefix } = args;
    const count = tickCount(args);
    const ticks = Array.from({ length: count }, (_, at) => {
        const elapsed = (at + 1) * intervalMs / 1000;
        const remaining = Math.max(0, durationSeconds - elapsed);
        const times = `${elapsed.toFixed(1)}s elapsed, ${remaining.toFixed(1)}s remaining`;
        return `${messagePrefix} ${at + 1}/${count} (${times})`;
    });
    return [
        `${messagePrefix}: starting, ${count} messages every ${intervalMs} ms`,
        ...ticks,
        `${messagePrefix}: complete, ${count} messages sent`,
    ];
}

export const isResponse = (message) => 'result' in message || 'error' in message;

/** The log messages of a tool in a list of messages. */
export function notesIn(messages, logger = notifications) {
    return messages.filter((message) => message.method === 'notifications/message' && message.params.logger === logger)
        .map((message) => message.params.data);
}

export const notesOf = (messages, { messagePrefix }) =>
    notesIn(messages).filter((data) => data.startsWith(`${messagePrefix}:`) || data.startsWith(`${messagePrefix} `));

export function checkResult(result, args) {
    assert.notEqual(result.isError, true);
    assert.equal(result.content.length, 1);
    assert.equal(result.content[0].type, 'text');
    assert.deepEqual(JSON.parse(result.content[0].text), {
        success: true,
        notificationsSent: tickCount(args) + 2,
        durationSeconds: args.durationSeconds,
        configuration: args,
    });
}

/** Over all pages: every message once, in order, then one result, and nothing of the call after it. */
export function checkWhole(pages, args) {
    const seen = pages.flatMap((page) => page.seen);
    assert.deepEqual(notesOf(seen, args), expectedNotes(args));
    const mine = (message) => message.result?.content?.[0]?.text.includes(JSON.stringify(args.messagePrefix));
    const results = seen.filter(mine);
    assert.equal(results.length, 1, 'one result');
    checkResult(results[0].result, args);
    const last = seen.findLastIndex((message) => notesOf([message], args).length > 0);
    assert.ok(seen.findIndex(mine) > last, 'the result comes last');
}

/** A stream connection begins with an id to resume from, before any message. */
export function checkPriming(exchange) {
    const [first] = exchange.events;
    assert.ok(first, 'an event came');
    assert.equal(first.data, '');
    assert.match(first.retry, /^\d+$/);
    assert.ok(first.id);
    assert.ok(first.event === undefined || first.event === 'message');
}

/** The same for a session older than 2025-11-25, whose clients cannot take empty data. */
export function checkTypedPriming(exchange) {
    const [first, ...rest] = exchange.events;
    assert.ok(first, 'an event came');
    assert.equal(first.event, 'belay');
    assert.equal(first.data, '{}');
    assert.ok(first.id);
    for (const event of [first, ...rest])
        assert.ok(event.data, 'no event with empty data');
}

/** Bytes that are what the content says they are. */
export function checkPng({ type, mimeType, data }) {
    assert.deepEqual([type, mimeType], ['image', 'image/png']);
    assert.equal(Buffer.from(data, 'base64').toString('latin1', 0, 8), '\x89PNG\r\n\x1a\n');
}

export function checkAudio({ type, mimeType, data }) {
    assert.deepEqual([type, mimeType], ['audio', 'audio/wav']);
    const bytes = Buffer.from(data, 'base64').toString('latin1');
    assert.deepEqual([bytes.slice(0, 4), bytes.slice(8, 12)], ['RIFF', 'WAVE']);
}
